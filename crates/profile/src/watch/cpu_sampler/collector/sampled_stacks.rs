//! Stacks as addresses, and the names of these.

use std::collections::HashMap;

use crate::watch::folded_stacks::FoldedStacks;
use crate::watch::frame_name;

/// The name for stacks with a recorded thread only.
const OTHERS: &str = "other stacks";

/// The stacks of a sampled run, as addresses in this program.
///
/// Resolving their names reads the program's symbol tables, which can take hundreds of MiB: do it after all
/// measurements.
#[derive(Clone, Debug, Default)]
pub struct SampledStacks {
    pub(super) stacks: HashMap<(String, Vec<usize>), u64>,
    pub(super) lost: u64,
}

impl SampledStacks {
    /// The stacks with readable names, without the frames that start the program and its threads.
    pub fn named(&self) -> FoldedStacks {
        let mut names: HashMap<usize, Vec<String>> = HashMap::new();
        let mut folded = FoldedStacks::default();
        for ((thread, addresses), samples) in &self.stacks {
            let mut frames: Vec<&str> = Vec::new();
            for (depth, address) in addresses.iter().enumerate() {
                // The outer frames are return addresses, just after the call. The lookup compensates for
                // that, so the interrupted address must be passed as if it were a return address too.
                let address = if depth == 0 { address + 1 } else { *address };
                names.entry(address).or_insert_with(|| functions_at(address));
            }
            for (depth, address) in addresses.iter().enumerate() {
                let address = if depth == 0 { address + 1 } else { *address };
                frames.extend(names.get(&address).into_iter().flatten().map(String::as_str));
            }
            frames.reverse();
            // Frames outside our first own frame start the program or the thread.
            let start = frames.iter().rposition(|name| frame_name::is_start(name)).map_or(0, |at| at + 1);
            if addresses.is_empty() {
                frames.push(OTHERS);
            }
            let thread = if thread.is_empty() { "a thread" } else { thread };
            folded.add(std::iter::once(thread).chain(frames.into_iter().skip(start)), *samples);
        }
        folded.add(["lost samples"], self.lost);
        backtrace::clear_symbol_cache();
        folded
    }
}

/// The functions at an address, innermost first: inlined functions have no frame of their own.
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
