//! Asking work to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;

/// Lets one thread ask the work of others to end; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Ask once more.
    pub fn request(&self) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |asked| asked.checked_add(1));
    }

    /// Whether the work is to end, and to leave things as they were.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether it was asked for again: then nobody waits for files to be removed, and the next run does that.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }

    /// Refuse to go on once the end was asked for.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<(), Error> {
        if self.is_requested() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}
