//! A service that keeps documents, and takes writes only from who holds the lock of a document.
//!
//! `cargo run -p quorate-fence --example http -- DIRECTORY`, then
//!
//! ```sh
//! curl -X PUT http://127.0.0.1:8080/documents/a -d text -H "Quorate-Fence: $QUORATE_FENCE"
//! ```

mod app;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use quorate_fence::FileGate;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("error: say in which directory the documents are");
        return ExitCode::from(2);
    };
    match serve(directory).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(directory: PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    // Beside the documents: who loses one loses the other.
    let gate = FileGate::open_or_create(directory.join(".gate"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 8080)).await?;
    println!("documents are at http://{}/documents/NAME", listener.local_addr()?);
    Ok(axum::serve(listener, app::documents(directory, Arc::new(gate))).await?)
}
