//! Where a thread keeps its spans while it runs: a tree in thread-local memory, merged into the phase when
//! the thread is detached. Threads share only the [`SpanSink`], which is locked once per
//! attachment, not per span, and the state that each thread publishes ([`crate::trace::live`]).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::trace::live::{LiveThread, Shown, ShownThreads};
use crate::trace::span_report::{SpanReport, ThreadReport, merge};
use crate::trace::system::thread_clock::{ThreadClock, thread_ready_time};
use crate::trace::turns::is_simulated;
use crate::trace::wait::WaitKind;

/// The most nodes in one thread's tree of spans. Further spans are not recorded, so that recursion cannot
/// fill the memory.
const MAX_NODES: usize = 4096;
/// The most thread names in one phase; further threads are added up as [`OTHER_THREADS`].
const MAX_THREADS: usize = 512;
const OTHER_THREADS: &str = "other threads";
const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// Where the threads of one phase store their measurements. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SpanSink {
    threads: Arc<Mutex<Vec<ThreadReport>>>,
    shown: Arc<Mutex<ShownThreads>>,
}

impl SpanSink {
    /// Records the spans of the calling thread under `thread_name` until the guard is dropped. A thread
    /// already attached to the same sink is left unchanged; one attached to another sink (an outer phase)
    /// returns to that one afterwards.
    ///
    /// ```
    /// let profile = sawmill_profile::Profile::new();
    /// let phase = profile.phase("encode");
    /// let sink = phase.sink();
    /// std::thread::spawn(move || {
    ///     let _attached = sink.attach("encoder 1");
    ///     let span = sawmill_profile::span("page");
    ///     span.add_rows(100);
    /// }).join().unwrap();
    /// let report = phase.finish();
    /// assert_eq!(report.threads[0].spans[0].rows, 100);
    /// ```
    pub fn attach(&self, thread_name: &str) -> AttachedThread {
        // A simulation measures nothing.
        let generation = if is_simulated() { 0 } else { Ledger::open(self, thread_name) };
        AttachedThread { generation, not_send: std::marker::PhantomData }
    }

    /// The threads' measurements so far, in order of first appearance.
    pub fn threads(&self) -> Vec<ThreadReport> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current activity of the attached threads.
    pub fn live(&self) -> Vec<LiveThread> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).now()
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.threads, &other.threads)
    }

    fn take_in(&self, report: ThreadReport) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let full = threads.len() >= MAX_THREADS;
        let place = threads
            .iter()
            .position(|have| have.name == report.name)
            .or_else(|| if full { threads.iter().position(|have| have.name == OTHER_THREADS) } else { None });
        match place.and_then(|place| threads.get_mut(place)) {
            Some(have) => {
                have.attached += report.attached;
                have.wall += report.wall;
                have.cpu += report.cpu;
                have.ready = have.ready.zip(report.ready).map(|(have, more)| have + more);
                merge(&mut have.spans, report.spans);
            }
            None if full => threads.push(ThreadReport { name: OTHER_THREADS.into(), ..report }),
            None => threads.push(report),
        }
    }
}

/// Keeps the calling thread attached to a [`SpanSink`]; its spans are merged when this is dropped.
#[derive(Debug)]
#[must_use = "the thread is detached when this is dropped"]
pub struct AttachedThread {
    /// The ledger that this guard opened; 0 if the thread was already attached.
    generation: u64,
    /// A guard belongs to its thread.
    not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for AttachedThread {
    fn drop(&mut self) {
        if self.generation != 0 {
            Ledger::close(self.generation);
        }
    }
}

thread_local! {
    static LEDGER: RefCell<Option<Box<Ledger>>> = const { RefCell::new(None) };
}

/// The tree of spans of one attached thread.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) generation: u64,
    sink: SpanSink,
    shown: Arc<Shown>,
    thread_name: String,
    nodes: Vec<Node>,
    current: u32,
    pub(crate) clock: ThreadClock,
    /// CPU time, and time without a processor while ready to run, before it was attached.
    cpu_before: u64,
    ready_before: Option<u64>,
    /// The attachment that this one interrupts.
    outer: Option<Box<Ledger>>,
}

#[derive(Debug, Default)]
struct Node {
    name: &'static str,
    wait: Option<WaitKind>,
    parent: u32,
    first_child: u32,
    next_sibling: u32,
    calls: u64,
    wall: u64,
    cpu: u64,
    rows: u64,
    bytes: u64,
}

impl Node {
    fn new(name: &'static str, wait: Option<WaitKind>, parent: u32) -> Self {
        Self { name, wait, parent, first_child: NONE, next_sibling: NONE, ..Self::default() }
    }
}

/// What a closed span adds to its node in the tree; times in ns.
pub(crate) struct Closed {
    pub(crate) node: u32,
    pub(crate) wall: u64,
    pub(crate) cpu: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Ledger {
    /// Runs `work` on the calling thread's ledger; `None` if it has none.
    #[inline]
    pub(crate) fn with<T>(work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        LEDGER.try_with(|cell| cell.try_borrow_mut().ok()?.as_deref_mut().map(work)).ok().flatten()
    }

    fn open(sink: &SpanSink, thread_name: &str) -> u64 {
        static GENERATIONS: AtomicU64 = AtomicU64::new(1);
        LEDGER
            .try_with(|cell| {
                let mut slot = cell.try_borrow_mut().ok()?;
                if slot.as_ref().is_some_and(|ledger| ledger.sink.same(sink)) {
                    return None;
                }
                let mut clock = ThreadClock::start();
                let cpu_before = clock.cpu_at(0);
                let generation = GENERATIONS.fetch_add(1, Relaxed);
                let mut threads = sink.shown.lock().unwrap_or_else(PoisonError::into_inner);
                let shown = threads.attach(thread_name, MAX_THREADS);
                drop(threads);
                *slot = Some(Box::new(Self {
                    generation,
                    sink: sink.clone(),
                    shown,
                    thread_name: thread_name.to_owned(),
                    nodes: vec![Node::new("", None, NONE)],
                    current: ROOT,
                    clock,
                    cpu_before,
                    ready_before: thread_ready_time(),
                    outer: slot.take(),
                }));
                Some(generation)
            })
            .ok()
            .flatten()
            .unwrap_or(0)
    }

    /// Merges and removes the ledger of this generation and those opened after it.
    fn close(generation: u64) {
        let _ = LEDGER.try_with(|cell| {
            let Ok(mut slot) = cell.try_borrow_mut() else { return };
            while slot.as_ref().is_some_and(|ledger| ledger.generation >= generation) {
                if let Some(mut ledger) = slot.take() {
                    let report = ledger.report();
                    ledger.sink.take_in(report);
                    ledger.shown.detach();
                    *slot = ledger.outer.take();
                }
            }
        });
    }

    /// Moves to the child of the current node with this name and returns it; `None` if the tree is full.
    #[inline]
    pub(crate) fn enter(&mut self, name: &'static str, wait: Option<WaitKind>) -> Option<u32> {
        let mut last = NONE;
        let mut child = self.nodes.get(self.current as usize)?.first_child;
        while let Some(node) = self.nodes.get(child as usize) {
            // The addresses nearly always decide; equal texts at two addresses are the same name.
            if node.wait == wait && (std::ptr::eq(node.name, name) || node.name == name) {
                self.current = child;
                if let Some(kind) = wait {
                    self.shown.begin_wait(kind);
                }
                return Some(child);
            }
            last = child;
            child = node.next_sibling;
        }
        self.add_child(name, wait, last)
    }

    #[cold]
    fn add_child(&mut self, name: &'static str, wait: Option<WaitKind>, last: u32) -> Option<u32> {
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let place = self.nodes.len() as u32;
        match self.nodes.get_mut(last as usize) {
            Some(sibling) => sibling.next_sibling = place,
            None => self.nodes.get_mut(self.current as usize)?.first_child = place,
        }
        self.nodes.push(Node::new(name, wait, self.current));
        if let Some(kind) = wait {
            self.shown.begin_wait(kind);
        }
        self.current = place;
        Some(place)
    }

    /// Records a closed span and returns to its parent.
    #[inline]
    pub(crate) fn leave(&mut self, closed: &Closed) {
        if let Some(node) = self.nodes.get_mut(closed.node as usize) {
            node.calls += 1;
            node.wall += closed.wall;
            node.cpu += closed.cpu;
            node.rows += closed.rows;
            node.bytes += closed.bytes;
            let (parent, waited) = (node.parent, node.wait.is_some());
            self.current = parent;
            if waited {
                match self.nodes.get(parent as usize).and_then(|outer| outer.wait) {
                    Some(outer) => self.shown.begin_wait(outer),
                    None => self.shown.end_wait(),
                }
            }
            if parent == ROOT {
                self.shown.count(closed.rows, closed.bytes);
            }
        }
    }

    /// What the thread has done since it was attached.
    fn report(&mut self) -> ThreadReport {
        let now = self.clock.wall();
        let cpu = self.clock.exact_cpu_at(now);
        let ready = thread_ready_time().zip(self.ready_before);
        let ready = ready.map(|(now, before)| Duration::from_nanos(now.saturating_sub(before)));
        ThreadReport {
            name: self.thread_name.clone(),
            attached: 1,
            wall: Duration::from_nanos(now),
            cpu: Duration::from_nanos(cpu.saturating_sub(self.cpu_before)),
            ready,
            spans: self.children(ROOT, 0),
        }
    }

    /// The spans below a node as a report.
    fn children(&self, place: u32, depth: usize) -> Vec<SpanReport> {
        let mut spans = Vec::new();
        let mut child = self.nodes.get(place as usize).map_or(NONE, |node| node.first_child);
        while let Some(node) = self.nodes.get(child as usize) {
            let span = SpanReport {
                name: node.wait.map_or(node.name, WaitKind::label).to_owned(),
                wait: node.wait,
                calls: node.calls,
                wall: Duration::from_nanos(node.wall),
                cpu: Duration::from_nanos(node.cpu),
                rows: node.rows,
                bytes: node.bytes,
                // Deeper nesting than a report can show would only use stack.
                children: if depth < 64 { self.children(child, depth + 1) } else { Vec::new() },
            };
            if span.calls > 0 || !span.children.is_empty() {
                spans.push(span);
            }
            child = node.next_sibling;
        }
        spans
    }
}
