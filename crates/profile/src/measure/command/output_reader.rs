//! Reads the output of another program and keeps a bounded part: the end, which holds the errors.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::measure::command::captured_output::CapturedOutput;

/// How many bytes of each stream to keep.
const KEPT: usize = 64 << 10;

/// A stream read by its own thread, so that the program never waits for us.
#[derive(Debug)]
pub(crate) struct OutputReader {
    shared: Arc<(Mutex<Kept>, Condvar)>,
}

#[derive(Debug, Default)]
struct Kept {
    end: VecDeque<u8>,
    bytes: u64,
    ended: bool,
}

impl OutputReader {
    pub(crate) fn start(mut stream: impl Read + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new((Mutex::new(Kept::default()), Condvar::new()));
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("output reader".into()).spawn(move || {
            let mut buffer = [0u8; 8192];
            let (kept, ended) = &*theirs;
            loop {
                let read = match stream.read(&mut buffer) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Ok(read) => read,
                    Err(_) => 0,
                };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.bytes += read as u64;
                kept.end.extend(buffer.iter().take(read));
                let over = kept.end.len().saturating_sub(KEPT);
                kept.end.drain(..over);
                if read == 0 {
                    kept.ended = true;
                    ended.notify_all();
                    return;
                }
            }
        })?;
        Ok(Self { shared })
    }

    /// Returns the output once the stream ends or this time is over: children left behind may hold it open.
    pub(crate) fn finish(self, most: Duration) -> CapturedOutput {
        let (kept, ended) = &*self.shared;
        let until = Instant::now() + most;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        while !kept.ended && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            kept = ended.wait_timeout(kept, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        CapturedOutput { end: kept.end.iter().copied().collect(), bytes: kept.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_every_byte_is_counted() {
        let text: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let reader = OutputReader::start(std::io::Cursor::new(text.clone())).unwrap();
        let output = reader.finish(Duration::from_secs(5));
        assert_eq!(output.bytes, 200_000);
        assert_eq!(output.end, text[text.len() - KEPT..]);
    }
}
