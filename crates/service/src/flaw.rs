//! Planted mistakes: a test switches one on, and the judge has to find it.

/// Is this mistake planted? Always false outside of tests.
macro_rules! flaw {
    ($name:ident) => {{
        #[cfg(test)]
        let planted = $crate::flaw::is_planted(stringify!($name));
        #[cfg(not(test))]
        let planted = false;
        planted
    }};
}

#[cfg(test)]
std::thread_local! {
    static PLANTED: core::cell::Cell<Option<&'static str>> = const { core::cell::Cell::new(None) };
}

#[cfg(test)]
pub(crate) fn is_planted(name: &str) -> bool {
    PLANTED.get() == Some(name)
}

/// Runs `test` with the mistake planted on this thread.
#[cfg(test)]
pub(crate) fn plant<R>(name: &'static str, test: impl FnOnce() -> R) -> R {
    PLANTED.set(Some(name));
    let result = test();
    PLANTED.set(None);
    result
}
