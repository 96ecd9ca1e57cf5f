//! What the cluster asks of an engine.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use quorate_service::{Answer, Committed, Order, Register};
use tokio::sync::watch;

/// An outcome that is not known: the order may have been done, may be done later, or may never be.
///
/// It is no refusal. Who gets it asks again: orders are idempotent (the same nonce, the same proposal)
/// or compared (the beat, the epoch), so that asking twice does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the authority did not answer: the outcome is not known")
    }
}

impl Error for Unknown {}

/// An engine that puts orders into one durable sequence, and does them one after the other.
pub trait Authority: Send + Sync + 'static {
    /// Registers as they were committed. What is seen here may lag, and never goes back.
    fn watch(&self) -> watch::Receiver<Committed>;

    /// The register as it was at some moment between the call and its answer: whatever was answered
    /// before the call, to anybody, is in it.
    fn read(&self) -> impl Future<Output = Result<Arc<Register>, Unknown>> + Send;

    /// Does an order, at some moment between the call and its answer. It is done at most once for
    /// each call. Who is answered finds what was done in what is watched here.
    fn order(&self, order: Order) -> impl Future<Output = Result<Answer, Unknown>> + Send;
}
