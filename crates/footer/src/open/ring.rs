//! A ring of requests to Linux (io_uring). One system call opens or reads dozens of files, into slots of the
//! ring instead of the process's descriptor table, whose lock threads would contend for.
//!
//! ```text
//! slots ──▶ queue of requests ──one call──▶ the kernel ──▶ queue of answers ──▶ slots
//! ```
//!
//! Layouts and numbers are those of the kernel's `include/uapi/linux/io_uring.h`. [`Ring::new`] fails if the
//! system is older than Linux 5.17 or forbids rings.
#![allow(unsafe_code, reason = "system calls, and queues that the kernel shares")]

use std::ffi::{c_long, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn mmap(at: *mut c_void, len: usize, prot: i32, flags: i32, file: i32, offset: i64) -> *mut c_void;
    fn munmap(at: *mut c_void, len: usize) -> i32;
}

const IO_URING_SETUP: c_long = 425;
const IO_URING_ENTER: c_long = 426;
const IO_URING_REGISTER: c_long = 427;
/// For [`IO_URING_REGISTER`]: slots for files.
const REGISTER_FILES: c_long = 2;
/// Wait for answers.
const ENTER_GETEVENTS: c_long = 1;
/// Both queues share one mapping, and the kernel is Linux 5.17 or later: before 5.15, a file would be opened
/// into the descriptor table even if a slot is named.
const FEATURES: u32 = 1 << 0 | 1 << 11;
const OFFSET_QUEUES: i64 = 0;
const OFFSET_REQUESTS: i64 = 0x1000_0000;
const OP_OPENAT: u8 = 18;
const OP_READ: u8 = 22;
/// The request's file is a slot.
const FIXED_FILE: u8 = 1;

/// Paths are relative to the working directory.
const WORKING_DIRECTORY: RawFd = -100;

/// The number of slots, and the most requests at once.
pub(crate) const SLOTS: usize = 32;

/// The result of an unused slot, equal to that of a file that is not open.
const NOT_ASKED: i32 = -9;

#[repr(C)]
#[derive(Default)]
struct QueueOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    flags_or_overflow: u32,
    dropped_or_answers: u32,
    array_or_flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
#[derive(Default)]
struct Parameters {
    requests: u32,
    answers: u32,
    flags: u32,
    thread_cpu: u32,
    thread_idle: u32,
    features: u32,
    workers: u32,
    reserved: [u32; 3],
    request_queue: QueueOffsets,
    answer_queue: QueueOffsets,
}

/// A request as the kernel reads it.
#[repr(C)]
#[derive(Default)]
struct Entry {
    operation: u8,
    flags: u8,
    priority: u16,
    file: i32,
    offset: u64,
    address: u64,
    len: u32,
    operation_flags: u32,
    user: u64,
    buffer: u16,
    personality: u16,
    /// One more than the index of the slot to open the file into.
    slot: u32,
    reserved: [u64; 2],
}

/// An answer as the kernel writes it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Answer {
    user: u64,
    result: i32,
    flags: u32,
}

/// A request for a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// Opens the file at the slot's path for reading. The kernel first closes the file that
    /// was open in the slot: doing that separately takes 2 to 8 % of the total time. `unnoted` skips updating
    /// the access time, which the file's owner may request: the check alone takes 2 %.
    Open { unnoted: bool },
    /// Fills the slot's bytes from the file, starting at an offset.
    Read(u64),
}

/// A slot for one file.
#[derive(Default)]
pub(crate) struct Slot {
    /// Its path, terminated by a zero.
    path: Vec<u8>,
    /// The bytes read from it.
    pub bytes: Vec<u8>,
    /// The result of the last request: a number of bytes, or a negative error number.
    pub result: i32,
}

impl Slot {
    /// Names the slot's file; false if no file has such a path.
    pub fn put_path(&mut self, path: &Path) -> bool {
        let bytes = path.as_os_str().as_bytes();
        self.path.clear();
        self.path.extend_from_slice(bytes);
        self.path.push(0);
        !bytes.contains(&0)
    }
}

/// See the module's description.
pub(crate) struct Ring {
    file: OwnedFd,
    queues: Mapping,
    requests: Mapping,
    parameters: Parameters,
    slots: Vec<Slot>,
    /// Whether the kernel may still have requests whose answers were not awaited.
    pending: bool,
}

impl Ring {
    /// Creates a ring if the system supports it.
    pub fn new() -> io::Result<Self> {
        let mut parameters = Parameters::default();
        // SAFETY: the parameters have the layout that the call reads and writes.
        let file = unsafe { syscall(IO_URING_SETUP, SLOTS as c_long, &raw mut parameters) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(file as RawFd) };
        if parameters.features & FEATURES != FEATURES {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let empty = [-1_i32; SLOTS];
        // SAFETY: the call reads that many numbers.
        let registered = unsafe {
            let number = c_long::from(file.as_raw_fd());
            syscall(IO_URING_REGISTER, number, REGISTER_FILES, empty.as_ptr(), SLOTS as c_long)
        };
        if registered < 0 {
            return Err(io::Error::last_os_error());
        }
        let (of_requests, of_answers) = (&parameters.request_queue, &parameters.answer_queue);
        let requests_end = of_requests.array_or_flags as usize + parameters.requests as usize * 4;
        let answers_end =
            of_answers.dropped_or_answers as usize + parameters.answers as usize * size_of::<Answer>();
        let queues = Mapping::new(&file, OFFSET_QUEUES, requests_end.max(answers_end))?;
        let requests =
            Mapping::new(&file, OFFSET_REQUESTS, parameters.requests as usize * size_of::<Entry>())?;
        let slots = std::iter::repeat_with(Slot::default).take(SLOTS).collect();
        let ring = Self { file, queues, requests, parameters, slots, pending: false };
        for place in 0..ring.parameters.requests {
            // SAFETY: the array has an entry for each request.
            unsafe { ring.word(ring.parameters.request_queue.array_or_flags + 4 * place) }
                .store(place, Ordering::Relaxed);
        }
        Ok(ring)
    }

    /// The slots, available while no request is pending.
    pub fn slots(&mut self) -> &mut [Slot] {
        // Slots that the kernel may still write to are not accessible.
        if self.pending { &mut [] } else { &mut self.slots }
    }

    /// Sends each slot the request at its index, if any, and waits for all answers, which go to
    /// [`Slot::result`]. After a failure the ring must not be used again.
    pub fn run(&mut self, requests: &[Option<Request>; SLOTS]) -> io::Result<()> {
        if self.pending {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let (mask, tail_at) = (self.parameters.requests - 1, self.parameters.request_queue.tail);
        // SAFETY: a word of the queue's head.
        let start = unsafe { self.word(tail_at) }.load(Ordering::Relaxed);
        let mut count = 0;
        for (place, (slot, request)) in self.slots.iter_mut().zip(requests).enumerate() {
            slot.result = NOT_ASKED;
            let Some(request) = *request else { continue };
            // SAFETY: the queue is empty and has a place for each slot; the mask keeps within it.
            unsafe {
                let at = self.requests.start.cast::<Entry>().add((start.wrapping_add(count) & mask) as usize);
                at.write(Self::entry(place, slot, request));
            }
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        self.pending = true;
        // SAFETY: as above. A reader that sees the new tail also sees the writes before it.
        unsafe { self.word(tail_at) }.store(start.wrapping_add(count), Ordering::Release);
        let (mut to_put, mut to_come) = (count, count);
        while to_come > 0 {
            let file = c_long::from(self.file.as_raw_fd());
            let nothing: c_long = 0;
            // SAFETY: the names and bytes that the requests point to belong to the slots. Nothing can reach
            // those while answers are pending, and they outlive the ring if answers stay pending.
            let put = unsafe {
                let (to_put, to_come) = (c_long::from(to_put), c_long::from(to_come));
                syscall(IO_URING_ENTER, file, to_put, to_come, ENTER_GETEVENTS, nothing, nothing)
            };
            if put < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            to_put -= u32::try_from(put).unwrap_or(0).min(to_put);
            to_come -= self.take_answers().min(to_come);
        }
        self.pending = false;
        Ok(())
    }

    fn entry(place: usize, slot: &mut Slot, request: Request) -> Entry {
        const O_NONBLOCK: u32 = 0o4000;
        const O_NOATIME: u32 = 0o1_000_000;
        // The kernel reads a path up to its terminating zero.
        let path = if slot.path.ends_with(&[0]) { slot.path.as_ptr() } else { c"".as_ptr().cast() };
        let place = place as u32;
        let entry = Entry { user: place.into(), ..Entry::default() };
        match request {
            // Without `O_CLOEXEC`: a slot is not a descriptor that a child process could inherit.
            Request::Open { unnoted } => Entry {
                operation: OP_OPENAT,
                file: WORKING_DIRECTORY,
                address: path.expose_provenance() as u64,
                operation_flags: if unnoted { O_NONBLOCK | O_NOATIME } else { O_NONBLOCK },
                slot: place + 1,
                ..entry
            },
            Request::Read(offset) => Entry {
                operation: OP_READ,
                flags: FIXED_FILE,
                file: place as i32,
                offset,
                address: slot.bytes.as_mut_ptr().expose_provenance() as u64,
                len: u32::try_from(slot.bytes.len()).unwrap_or(u32::MAX),
                ..entry
            },
        }
    }

    /// Moves the available answers to the slots and returns their number.
    fn take_answers(&mut self) -> u32 {
        let queue = &self.parameters.answer_queue;
        // SAFETY: words of the queue's head. What the kernel wrote before the tail is visible here.
        let (head, tail) = unsafe { (self.word(queue.head), self.word(queue.tail)) };
        let (start, end) = (head.load(Ordering::Relaxed), tail.load(Ordering::Acquire));
        let count = end.wrapping_sub(start);
        for at in 0..count {
            let place = start.wrapping_add(at) & (self.parameters.answers - 1);
            // SAFETY: the mask keeps within the queue; the kernel has written the answers up to the tail.
            let answer = unsafe {
                let answers = self.queues.start.add(queue.dropped_or_answers as usize).cast::<Answer>();
                answers.add(place as usize).read()
            };
            if let Some(slot) = usize::try_from(answer.user).ok().and_then(|slot| self.slots.get_mut(slot)) {
                slot.result = answer.result;
            }
        }
        // SAFETY: as above.
        unsafe { self.word(queue.head) }.store(end, Ordering::Release);
        count
    }

    /// A word of the queues, which the kernel also reads and writes.
    ///
    /// # Safety
    ///
    /// `at` is one of the offsets that the kernel has returned.
    unsafe fn word(&self, at: u32) -> &AtomicU32 {
        // SAFETY: the caller ensures that the word lies in the mapping, which lives as long as the ring; the
        // kernel aligns words to multiples of four.
        unsafe { AtomicU32::from_ptr(self.queues.start.add(at as usize).cast().as_ptr()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.pending {
            // The kernel may still write to them.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

/// Memory shared with the kernel.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Mapping {
    fn new(ring: &OwnedFd, offset: i64, len: usize) -> io::Result<Self> {
        const PROT_READ_WRITE: i32 = 3;
        const MAP_SHARED_POPULATE: i32 = 0x8001;
        let at = ptr::null_mut();
        // SAFETY: a new mapping at a place that the kernel chooses touches no other.
        let start = unsafe { mmap(at, len, PROT_READ_WRITE, MAP_SHARED_POPULATE, ring.as_raw_fd(), offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().addr() != usize::MAX => Ok(Self { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `Mapping::new` mapped it with this length; the ring that owns it hands out no references
        // that outlive it.
        unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
