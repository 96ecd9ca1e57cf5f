//! What a browser calls. The page writes its question into a buffer of ours and reads the answer out of
//! another one; it does so only while none of our code runs, and only between the calls that say where
//! the buffers are and those that move them.
//!
//! No memory is touched here through a pointer. What is unsafe is the attribute that gives an exported
//! function its name: two functions of one name would be mixed up by the linker. These names begin with
//! `lab_`, and nothing else in the module has such a one.
#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::Desk;

#[derive(Default)]
struct Buffers {
    desk: Desk,
    question: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// The page is told how far a work is, in JSON; nothing is read from it.
    safe fn told(text: *const u8, length: usize);
    /// The page is told why a work came to an end that should not have.
    safe fn broke(text: *const u8, length: usize);
}

/// Makes room for a question of this length, and says where.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lab_room(length: usize) -> *mut u8 {
    BUFFERS.with_borrow_mut(|buffers| {
        buffers.question.clear();
        buffers.question.resize(length, 0);
        buffers.question.as_mut_ptr()
    })
}

/// Answers the question; the length of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lab_ask() -> usize {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        broke(text.as_ptr(), text.len());
    }));
    BUFFERS.with_borrow_mut(|Buffers { desk, question, answer }| {
        let mut progress = |text: &str| told(text.as_ptr(), text.len());
        let question = String::from_utf8_lossy(question);
        *answer = desk.ask(&question, &mut progress).bytes();
        answer.len()
    })
}

/// Where the answer is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lab_answer() -> *const u8 {
    BUFFERS.with_borrow(|buffers| buffers.answer.as_ptr())
}
