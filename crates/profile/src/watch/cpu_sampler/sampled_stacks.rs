//! Stacks as addresses, and their names.

use std::collections::HashMap;

use crate::watch::folded_stacks::FoldedStacks;
use crate::watch::frame_name;

/// What stands for stacks of which only the thread was kept.
const OTHERS: &str = "other stacks";

/// The stacks of a sampled run, as addresses in this program.
///
/// Finding their names reads the program's tables of symbols, which can take hundreds of MiB: do it when nothing is
/// measured any more.
#[derive(Clone, Debug, Default)]
pub struct SampledStacks {
    stacks: HashMap<(String, Vec<usize>), u64>,
    lost: u64,
}

impl SampledStacks {
    pub(super) fn of(stacks: HashMap<(String, Vec<usize>), u64>, lost: u64) -> Self {
        Self { stacks, lost }
    }

    /// The stacks with names a person can read. Frames of the start of the program and of threads are left out.
    pub fn named(&self) -> FoldedStacks {
        let mut names: HashMap<usize, Vec<String>> = HashMap::new();
        let mut folded = FoldedStacks::default();
        for ((thread, addresses), samples) in &self.stacks {
            let mut frames: Vec<&str> = Vec::new();
            for (depth, address) in addresses.iter().enumerate() {
                // The outer frames are return addresses: the call is before them. Looking a name up takes that into
                // account, so that the place of the interruption has to be given as if it was one, too.
                let address = if depth == 0 { address + 1 } else { *address };
                names.entry(address).or_insert_with(|| functions_at(address));
            }
            for (depth, address) in addresses.iter().enumerate() {
                let address = if depth == 0 { address + 1 } else { *address };
                frames.extend(names.get(&address).into_iter().flatten().map(String::as_str));
            }
            frames.reverse();
            // Outside of the first frame of our own the program and the thread are started.
            let start = frames.iter().rposition(|name| frame_name::is_start(name)).map_or(0, |at| at + 1);
            if addresses.is_empty() {
                frames.push(OTHERS);
            }
            let thread = if thread.is_empty() { "a thread" } else { thread };
            folded.add(std::iter::once(thread).chain(frames.into_iter().skip(start)), *samples);
        }
        folded.add(["samples that were lost"], self.lost);
        backtrace::clear_symbol_cache();
        folded
    }
}

/// The functions that an address is in, the innermost first: those that were compiled into others have no frame of
/// their own.
fn functions_at(address: usize) -> Vec<String> {
    let mut functions = Vec::new();
    backtrace::resolve(address as *mut std::ffi::c_void, |symbol| {
        if let Some(name) = symbol.name() {
            let name = frame_name::readable(&name.to_string());
            functions.push(frame_name::located(name, symbol.filename()));
        }
    });
    functions
}
