//! A timer for each thread that interrupts it whenever it has used a certain amount of CPU time
//! (`timer_create(2)`, `SIGEV_THREAD_ID`).
//!
//! A timer for the whole process (`setitimer(2)`) fires at most once per kernel tick, however many threads
//! run: with two busy threads a third of the samples was missing. A late timer of a thread reports how many
//! periods it represents, so that each one counts.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::watch::proc_files::numbered;

/// The signal that the timers send.
pub(super) const SIGNAL: libc::c_int = libc::SIGPROF;

/// The timers of this process's threads.
#[derive(Debug)]
pub(super) struct ThreadTimers {
    period: Duration,
    /// The collecting thread, which has no timer.
    except: u32,
    timers: BTreeMap<u32, Timer>,
    started: bool,
}

#[derive(Debug)]
struct Timer(libc::timer_t);

// SAFETY: a timer's id is a process-wide number, whatever its type; any thread may use it.
unsafe impl Send for Timer {}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was created once and is deleted only here.
        unsafe { libc::timer_delete(self.0) };
    }
}

impl ThreadTimers {
    pub(super) fn new(period: Duration, except: u32) -> Self {
        Self { period, except, timers: BTreeMap::new(), started: false }
    }

    /// Starts timers for new threads and ends the timers of threads that are gone. Returns the new threads.
    pub(super) fn refresh(&mut self) -> io::Result<Vec<u32>> {
        let threads = numbered("/proc/self/task");
        self.timers.retain(|thread, _| threads.contains(thread));
        let mut new = Vec::new();
        for thread in threads {
            if thread == self.except || self.timers.contains_key(&thread) {
                continue;
            }
            match self.start(thread) {
                Ok(timer) => {
                    self.timers.insert(thread, timer);
                    new.push(thread);
                }
                // The thread has ended since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.started && self.timers.is_empty() {
            return Err(io::Error::other("the system has no timers for a thread's CPU time"));
        }
        self.started = true;
        Ok(new)
    }

    fn start(&self, thread: u32) -> io::Result<Timer> {
        // SAFETY: an all-zero sigevent is a valid value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = thread as libc::c_int;
        let mut id: libc::timer_t = std::ptr::null_mut();
        // SAFETY: the event and the id are valid during the call.
        if unsafe { libc::timer_create(clock_of(thread), &mut event, &mut id) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Timer(id);
        // Existing threads are sampled from now on; for a newer one, the CPU time before it was found counts
        // too. The first sample falls anywhere in the period, so that short threads are sampled as often as
        // they should be.
        let flags = if self.started { libc::TIMER_ABSTIME } else { 0 };
        let first =
            self.period.mul_f64(f64::from(thread.wrapping_mul(0x9E37_79B9) >> 8) / f64::from(1 << 24));
        let times = libc::itimerspec {
            it_interval: timespec(self.period),
            it_value: timespec(first.max(Duration::from_nanos(1))),
        };
        // SAFETY: the timer exists, and the times are valid during the call.
        match unsafe { libc::timer_settime(timer.0, flags, &times, std::ptr::null_mut()) } {
            0 => Ok(timer),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The clock of a thread's CPU time, as the kernel numbers it (`posix-timers_types.h`: the inverted thread
/// id, followed by three bits that mean "of a thread, in nanoseconds").
fn clock_of(thread: u32) -> libc::clockid_t {
    (!(thread as libc::clockid_t) << 3) | 0b110
}

fn timespec(time: Duration) -> libc::timespec {
    // SAFETY: an all-zero timespec is a valid value.
    let mut spec: libc::timespec = unsafe { std::mem::zeroed() };
    spec.tv_sec = time.as_secs() as libc::time_t;
    spec.tv_nsec = time.subsec_nanos().into();
    spec
}
