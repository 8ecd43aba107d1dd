//! `--flamegraph`: samples the stacks of a whole command and draws them as one picture.

use std::io::Read;
use std::path::Path;

use sawmill_profile::{CpuSampler, FoldedStacks};

use crate::error::{Error, Result};
use crate::screen::console::Console;

/// Runs `work`. If a path is given, samples the stacks and draws them into that file, even if the work fails.
pub(crate) fn drawn(path: Option<&Path>, console: Console, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some(path) = path else { return work() };
    check(path)?;
    let sampler = CpuSampler::start()?;
    let worked = work();
    // Names are looked up after everything was measured, because this takes much memory.
    let stacks = sampler.stop().map(|stacks| stacks.named());
    let drawn = stacks.map_err(Error::from).and_then(|stacks| write(path, &stacks, console));
    // The error of the command itself takes precedence.
    worked.and(drawn)
}

/// Rejects a path that cannot take the picture, before any time is spent.
pub(crate) fn check(path: &Path) -> Result<()> {
    if cfg!(not(feature = "full")) {
        return Err(Error::not_built(format!("--flamegraph {}", path.display())));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = || format!("--flamegraph {}", path.display());
    if !folder.is_dir() {
        return Err(Error::usage("the folder does not exist", place(), "create it, or name another file"));
    }
    if path.is_dir() {
        return Err(Error::usage("it is a folder", place(), "name a file"));
    }
    may_replace(path, b'<', &place())
}

/// Rejects overwriting a file of another kind, such as data named by mistake: a file that is replaced must be
/// empty or begin with this byte.
pub(crate) fn may_replace(path: &Path, begins: u8, place: &str) -> Result<()> {
    match is_free_for(path, &[begins]) {
        true => Ok(()),
        false => Err(Error::usage("the file exists and is of another kind", place, "name another file")),
    }
}

/// Whether a file at `path` may be written: nothing regular is there, or an empty file, or one that begins with `begins`.
pub(crate) fn is_free_for(path: &Path, begins: &[u8]) -> bool {
    let start = |file: std::fs::File| {
        let mut start = Vec::new();
        file.take(begins.len() as u64).read_to_end(&mut start).map(|_| start)
    };
    !path.metadata().is_ok_and(|there| there.is_file())
        || std::fs::File::open(path).and_then(start).is_ok_and(|start| start.is_empty() || start == begins)
}

/// Draws stacks, titled with the command.
pub(crate) fn write(path: &Path, stacks: &FoldedStacks, console: Console) -> Result<()> {
    let words: Vec<String> = crate::words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = words.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let title = format!("sawmill {command}");
    sawmill_profile::write_whole(path, stacks.to_svg(title.trim_end()).as_bytes())?;
    let short = if stacks.too_short() { ", too few to be meaningful: measure a longer run" } else { "" };
    console.step(&format!("flame graph of {} samples in {}{short}", stacks.samples(), path.display()));
    Ok(())
}
