//! A verification that covers some of the rows is not reported as one of all.

use std::sync::Arc;

use sawmill_loader::{LoadReport, LoadState};
use sawmill_profile::turns;

use crate::world::Setting;
use crate::world::draw::Draw;
use crate::world::fault::Fault;
use crate::world::process::Process;
use crate::world::run::new_run;
use crate::world::source::FileState;

/// Loads a file, appends both until the command is killed at `step`, and runs it again. Returns the last report.
fn killed_append(step: u64) -> Option<LoadReport> {
    let setting = Setting {
        mode: 1,
        files: 2,
        degree: 1,
        unit_rows: 1,
        grouped: 2,
        verify: true,
        before: 0,
        synchronous: true,
        parts: 0,
    };
    let mut run = new_run(0, setting, Draw::new(0), None, false);
    run.files.iter_mut().for_each(|file| file.groups = vec![3]);
    let (run, world) = (&run, &run.world);
    turns::simulated(Arc::clone(&world.scheduler) as _, || {
        let load = |files: &[FileState], faults| {
            world.state().files = files.to_vec();
            run.load(&Process::new(world, faults, 0), run.options())
        };
        load(&run.files[..1], Vec::new()).ok()?;
        let _ = load(&run.files, vec![(step, Fault::Killed)]);
        run.quiet();
        load(&run.files, Vec::new()).ok()
    })
}

#[test]
fn a_comparison_of_some_of_the_rows_is_a_note_and_no_verification() {
    let reports = (0..80).filter_map(killed_append).filter(|report| report.state == LoadState::Resumed);
    let mut count = 0;
    for report in reports {
        assert_eq!((report.rows, report.verified), (6, None));
        let is_told = report.notes.iter().any(|note| note.starts_with("verified only 3 rows of the files"));
        assert!(is_told, "{:?}", report.notes);
        count += 1;
    }
    assert!(count > 0, "no append was interrupted");
}
