//! Calls of the standard library, each made again where a signal interrupted it: on network and user-space file systems
//! any of them may report that, and it says nothing about the file.

use std::io;

/// Make a call until no signal interrupts it.
pub fn retry_on_interrupt<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
