//! The files of the lab page, as `cargo xtask web` built them: `quorate lab` serves them, and so do agents
//! that are asked to.

use std::borrow::Cow;
use std::io::{self, Read};

/// What the page may do: run its own scripts and engines, and ask nobody else for anything.
pub const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
                          style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                          worker-src 'self'; connect-src 'self'; object-src 'none'; \
                          base-uri 'none'; frame-ancestors 'none'";

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name, below the root.
    pub name: &'static str,
    /// What it is.
    pub kind: &'static str,
    /// Is it compressed here?
    pub is_packed: bool,
    /// What is sent.
    pub bytes: &'static [u8],
}

/// A file that is compressed, by its name and what it is.
macro_rules! packed {
    ($name:literal, $kind:literal) => {
        Asset {
            name: $name,
            kind: $kind,
            is_packed: true,
            bytes: include_bytes!(concat!("../dist/", $name, ".br")),
        }
    };
}

const ASSETS: [Asset; 6] = [
    packed!("index.html", "text/html; charset=utf-8"),
    packed!("lab.js", "text/javascript; charset=utf-8"),
    packed!("lab.css", "text/css; charset=utf-8"),
    packed!("worker.js", "text/javascript; charset=utf-8"),
    packed!("engine.wasm", "application/wasm"),
    Asset {
        name: "inter-latin-wght-normal.woff2",
        kind: "font/woff2",
        is_packed: false,
        bytes: include_bytes!("../dist/inter-latin-wght-normal.woff2"),
    },
];

impl Asset {
    /// All files.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ASSETS.iter()
    }

    /// The file under a path, if there is one.
    #[must_use]
    pub fn at(path: &str) -> Option<&'static Self> {
        let name = if path == "/" { "index.html" } else { path.strip_prefix('/')? };
        ASSETS.iter().find(|asset| asset.name == name)
    }

    /// What is in the file, unpacked.
    ///
    /// # Errors
    /// If it was packed badly.
    pub fn plain(&self) -> io::Result<Cow<'static, [u8]>> {
        if !self.is_packed {
            return Ok(Cow::Borrowed(self.bytes));
        }
        let mut plain = Vec::new();
        brotli_decompressor::Decompressor::new(self.bytes, 1 << 16).read_to_end(&mut plain)?;
        Ok(Cow::Owned(plain))
    }

    /// A word that changes when the file does (Fowler, Noll and Vo's hash).
    #[must_use]
    pub fn tag(&self) -> String {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = self.bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
        format!("\"{hash:016x}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_paths_and_nothing_else_is() {
        assert_eq!(Asset::at("/").map(|asset| asset.name), Some("index.html"));
        assert_eq!(Asset::at("/engine.wasm").map(|asset| asset.kind), Some("application/wasm"));
        for path in ["", "engine.wasm", "//engine.wasm", "/../Cargo.toml", "/nothing"] {
            assert!(Asset::at(path).is_none(), "{path}");
        }
    }

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let page = Asset::at("/").unwrap().plain().unwrap();
        assert!(page.starts_with(b"<!doctype html>"));
        let engine = Asset::at("/engine.wasm").unwrap().plain().unwrap();
        assert_eq!(engine[..4], *b"\0asm");
    }

    /// What the issue asks for: the page with its engines at most 1.2 MB compressed.
    #[test]
    fn the_page_is_small() {
        let total: usize = Asset::all().map(|asset| asset.bytes.len()).sum();
        assert!(total <= 1_200_000, "{total} bytes");
    }
}
