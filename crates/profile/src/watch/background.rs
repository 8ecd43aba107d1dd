//! A thread that works until it is stopped, or until its handle is dropped.

use std::io;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};

/// The handle of a thread that returns a result.
#[derive(Debug)]
pub(super) struct Background<T> {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Background<T> {
    /// Starts `work`, which ends when its channel is disconnected.
    pub(super) fn start(
        name: &str,
        work: impl FnOnce(&Receiver<()>) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = bounded(1);
        let thread = Builder::new().name(name.to_owned()).spawn(move || work(&stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl<T> Background<T> {
    /// Stops it; `None` if it has panicked.
    pub(super) fn stop(&mut self) -> Option<T> {
        // Dropping the channel wakes the thread.
        self.stop = None;
        self.thread.take()?.join().ok()
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.stop();
    }
}
