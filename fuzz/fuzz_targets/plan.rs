//! Any text as the plan of a load test: a plan, the same again, whose limits name its operations, or an error with
//! its file.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sawmill_drive::{MAX_CONNECTIONS, Plan};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let read = || Plan::from_toml(text, "plan.toml", Path::new("fixtures/plans"));
    let plan = match read() {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.what().is_empty() && !error.place().is_empty(), "{error}"),
    };
    assert_eq!(format!("{plan:?}"), format!("{:?}", read().expect("as before")));
    assert!((1..=MAX_CONNECTIONS as usize).contains(&plan.parallel()), "{} at once", plan.parallel());
    assert!(plan.limits.iter().all(|limit| plan.check_limit(limit).is_ok()));
    assert!(!plan.operations.is_empty() && plan.operations.iter().any(|operation| operation.weight > 0.0));
    let _ = plan.counted_length();
});
