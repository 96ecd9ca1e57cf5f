//! Documents behind a gate: a layer that asks the gate, and a handler that cannot be reached without it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use quorate_fence::{Fence, Gate, Pass, Refusal};
use serde_json::json;

/// The header that a holder sends along.
const HEADER: &str = "Quorate-Fence";
/// What a request may have in its body.
const BODY_MAX: usize = 1 << 20;
/// How long somebody waits for one with an older fence who is inside: only for its write.
const WAIT: Duration = Duration::from_secs(5);

/// The service.
pub(crate) fn documents(directory: PathBuf, gate: Arc<dyn Gate>) -> Router {
    let guarded = put(write).layer(from_fn_with_state(gate, fenced));
    Router::new()
        .route("/documents/{name}", guarded.merge(get(read)))
        .with_state(Arc::new(directory))
}

/// Lets a request through while its fence is not old, and nothing newer until it is answered.
///
/// What is guarded is for the service to say, here by the path. A client that could name it itself could
/// get past the gate by another name.
async fn fenced(
    State(gate): State<Arc<dyn Gate>>,
    Path(name): Path<String>,
    request: Request,
    next: Next,
) -> Response {
    let Some(text) = request.headers().get(HEADER) else {
        let text = format!("send the fence of your lock in the header {HEADER}");
        return refuse(StatusCode::PRECONDITION_REQUIRED, "no_fence", &text);
    };
    let fence: Fence = match text.to_str().unwrap_or_default().parse() {
        Ok(fence) => fence,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, "bad_fence", &error.to_string()),
    };
    // First all that comes from outside, then the gate: who is inside waits for nobody.
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_MAX).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "body", "the body is too long or broke off");
    };
    // A gate in a file waits for its disk, which must not stop the other tasks.
    let entering =
        tokio::task::spawn_blocking(move || gate.enter(&format!("documents/{name}"), fence, WAIT));
    let pass = match entering.await {
        Ok(Ok(pass)) => Arc::new(pass),
        Ok(Err(refusal)) => return refused(fence, &refusal),
        Err(error) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, "gate", &error.to_string()),
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(pass);
    next.run(request).await
}

fn refused(fence: Fence, refusal: &Refusal) -> Response {
    let (status, error) = match refusal {
        // A precondition in a header that does not hold (RFC 9110, 15.5.13). Do not repeat it.
        Refusal::Stale { .. } => (StatusCode::PRECONDITION_FAILED, "stale_fence"),
        Refusal::Name => (StatusCode::BAD_REQUEST, "bad_name"),
        // Nothing is wrong with the request.
        Refusal::Busy { .. } => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
        Refusal::Full { .. } => (StatusCode::SERVICE_UNAVAILABLE, "full"),
        Refusal::Broken(_) => (StatusCode::SERVICE_UNAVAILABLE, "broken"),
    };
    let mut body =
        json!({ "error": error, "message": refusal.to_string(), "fence": fence.to_string() });
    if let Refusal::Stale { seen } = refusal {
        body["seen"] = seen.to_string().into();
    }
    (status, Json(body)).into_response()
}

fn refuse(status: StatusCode, error: &str, message: &str) -> Response {
    (status, Json(json!({ "error": error, "message": message }))).into_response()
}

/// Writes a document. There is no way here without a pass.
async fn write(
    State(directory): State<Arc<PathBuf>>,
    Extension(pass): Extension<Arc<Pass>>,
    Path(name): Path<String>,
    text: Bytes,
) -> Response {
    if !is_plain(&name) {
        return refuse(StatusCode::BAD_REQUEST, "bad_name", "letters and digits only");
    }
    // The pass goes with the work: it ends with it, even if nobody waits for the answer any more.
    let work = move || {
        let written = replace(&directory, &name, &text);
        drop(pass);
        written
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err(error)) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "disk", &error.to_string()),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "write", &error.to_string()),
    }
}

async fn read(State(directory): State<Arc<PathBuf>>, Path(name): Path<String>) -> Response {
    if !is_plain(&name) {
        return refuse(StatusCode::BAD_REQUEST, "bad_name", "letters and digits only");
    }
    match tokio::task::spawn_blocking(move || fs::read(directory.join(name))).await {
        Ok(Ok(text)) => text.into_response(),
        _ => refuse(StatusCode::NOT_FOUND, "not_found", "there is no such document"),
    }
}

fn is_plain(name: &str) -> bool {
    name.len() <= 64 && name.chars().all(|letter| letter.is_ascii_alphanumeric())
}

fn replace(directory: &std::path::Path, name: &str, text: &[u8]) -> io::Result<()> {
    let new = directory.join(format!("{name}.new"));
    fs::write(&new, text)?;
    fs::File::open(&new)?.sync_all()?;
    fs::rename(new, directory.join(name))?;
    fs::File::open(directory)?.sync_all()
}
