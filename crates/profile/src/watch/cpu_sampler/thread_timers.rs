//! A timer for each thread that goes off after every so much CPU time of that thread, and interrupts it
//! (`timer_create(2)`, `SIGEV_THREAD_ID`).
//!
//! A timer for the whole process (`setitimer(2)`) goes off at most once a tick of the kernel, however many
//! threads run: of two busy threads a third of the samples was missing. The timer of a thread that was late
//! says how many periods it stands for, so that each counts.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::watch::proc_files::numbered;

/// The signal that timers send.
pub(super) const SIGNAL: libc::c_int = libc::SIGPROF;

/// The timers of this process's threads.
#[derive(Debug)]
pub(super) struct ThreadTimers {
    period: Duration,
    /// The thread that collects, which has no timer.
    except: u32,
    timers: BTreeMap<u32, Timer>,
    started: bool,
}

#[derive(Debug)]
struct Timer(libc::timer_t);

// SAFETY: a timer's id is a number of the process, whatever type stands for it; any thread may use it.
unsafe impl Send for Timer {}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was created and is deleted once, here.
        unsafe { libc::timer_delete(self.0) };
    }
}

impl ThreadTimers {
    pub(super) fn new(period: Duration, except: u32) -> Self {
        Self { period, except, timers: BTreeMap::new(), started: false }
    }

    /// Starts timers for threads that are new and ends those of threads that are gone. Gives the new ones.
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
                // It has ended since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.started && self.timers.is_empty() {
            return Err(io::Error::other("the system has no timers of a thread's CPU time"));
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
        // SAFETY: the event and the id are valid for the length of the call.
        if unsafe { libc::timer_create(clock_of(thread), &mut event, &mut id) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Timer(id);
        // Threads that were there before are sampled from now on; of one that came since, what it used before it
        // was found counts, too. The first sample falls anywhere in the period, so that short threads are seen
        // as often as they should.
        let flags = if self.started { libc::TIMER_ABSTIME } else { 0 };
        let first =
            self.period.mul_f64(f64::from(thread.wrapping_mul(0x9E37_79B9) >> 8) / f64::from(1 << 24));
        let times = libc::itimerspec {
            it_interval: timespec(self.period),
            it_value: timespec(first.max(Duration::from_nanos(1))),
        };
        // SAFETY: the timer exists, and the times are valid for the length of the call.
        match unsafe { libc::timer_settime(timer.0, flags, &times, std::ptr::null_mut()) } {
            0 => Ok(timer),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The clock of a thread's CPU time, as the kernel numbers it (`posix-timers_types.h`: the number of the thread,
/// inverted, before three bits that say a thread's, in nanoseconds).
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
