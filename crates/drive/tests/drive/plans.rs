//! Plans: errors name file, line and field, and the allowed values.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_drive::{Address, Plan};

use crate::{driven, plan};

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let error = Plan::from_toml(text, "shop.toml", Path::new(".")).unwrap_err().to_string();
    parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is not in {error:?}"));
}

/// Why a plan is not driven.
fn not_driven(plan: &Plan) -> String {
    let cancel = AtomicBool::new(false);
    let driving = sawmill_drive::Driving {
        address: &Address::Null,
        server: None,
        cancel: &cancel,
        observer: &mut (),
        command: String::new(),
    };
    sawmill_drive::run(plan, driving).unwrap_err().to_string()
}

const GOOD: &str = "[tables.orders]\n[[operations]]\nname = \"a\"\ninsert = \"orders\"\n";

#[test]
fn mistakes_are_named_with_their_place() {
    refused(&format!("speed = 3\n{GOOD}"), &["unknown key `speed`", "shop.toml, line 1, column 1", "rate"]);
    refused(&format!("rate = \"fast\"\n{GOOD}"), &["\"fast\" is not a rate", "line 1", "`rate`", "50k"]);
    refused(&format!("{GOOD}rows = 0\n"), &["0 is out of bounds", "line 5", "`rows`", "1 to 100000"]);
    refused(&format!("{GOOD}copy = \"orders\"\n"), &["several kinds: insert, copy", "operation 1"]);
    refused(
        &format!("{GOOD}[[operations]]\nselect = \"order\"\n"),
        &["no table \"order\"", "line 6", "the plan has: orders"],
    );
    refused(
        &format!("{GOOD}[[operations]]\nselect = \"orders\"\npick = \"best\"\n"),
        &["\"best\"", "`pick`", "uniform, zipf, latest"],
    );
    refused(
        &format!("{GOOD}[[operations]]\nname = \"a\"\ndelete = \"orders\"\n"),
        &["two operations are named \"a\""],
    );
    refused(
        &format!(
            "{GOOD}[[operations]]\nsql = \"SELECT $1\"\ntable = \"orders\"\nparameters = [\"old.nme\"]\n"
        ),
        &["\"old.nme\" is not a parameter", "line 8", "customer_id"],
    );
    refused(&format!("limits = [\"b.p99 < 1s\"]\n{GOOD}"), &["no operation \"b\"", "there are a"]);
    refused(&format!("clients = 3\nrate = 3\n{GOOD}"), &["`rate` in a closed loop"]);
    refused(&format!("isolation = \"high\"\n{GOOD}"), &["\"high\"", "serializable"]);
    refused(&format!("timeout = \"0s\"\n{GOOD}"), &["less than 1 ms", "line 1", "`timeout`", "1ms or more"]);
    refused(&format!("pooling = \"some\"\n{GOOD}"), &["`pooling`", "line 1", "`1000 operations`"]);
    refused(&format!("reconnect = \"soon\"\n{GOOD}"), &["`reconnect`", "30s every 100ms"]);
    refused(&format!("{GOOD}[[operations]]\nunnest = \"orders\"\nrows = 0\n"), &["`rows`", "line 7"]);
    refused(&format!("chaos = \"break it\"\n{GOOD}"), &["kill server every 30s"]);
    refused("[tables.orders]\nspec = \"none.toml\"\n", &["line 2", "table orders", "`spec`"]);
    refused("rate = 3\n", &["a plan without operations"]);
    for check in ["", "DELETE FROM orders", "SET a = 1", "-- select\\nDELETE FROM orders"] {
        let text = format!("{GOOD}[[checks]]\nname = \"c\"\nsql = \"{check}\"\n");
        refused(&text, &["a check that is no query", "line 7", "`sql`", "write a SELECT"]);
    }
    refused("rate = = 3\n", &["shop.toml, line 1"]);
    refused(&format!("{GOOD}weight = 0\n"), &["no operation has a weight"]);
}

#[test]
fn a_closed_loop_does_as_much_as_it_can_and_says_what_it_is() {
    let plan = plan(&format!("clients = 2\nthink = \"10ms\"\nfor = \"1s\"\n{GOOD}"));
    let over = AtomicBool::new(false);
    // On a busy machine a sleep takes longer: these threads do the same.
    let sleeps = || {
        let (began, mut count) = (Instant::now(), 0.0);
        while !over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
            count += 1.0;
        }
        count / began.elapsed().as_secs_f64()
    };
    let (result, usual) = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(sleeps));
        let result = driven(&plan, &Address::Null, None);
        over.store(true, Relaxed);
        (result, threads.map(|thread| thread.join().unwrap()).iter().sum::<f64>())
    });
    assert_eq!(result.run.loop_kind, "closed");
    let ok = result.total.ok;
    assert!(ok <= 200 && ok as f64 > usual / 2.0, "{ok} of {usual}");
}

#[test]
fn a_trace_has_its_own_times_and_operations() {
    let folder = std::env::temp_dir().join(format!("sawmill-drive-trace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("times.csv");
    std::fs::write(&trace, "# seconds,operation\n0.0,a\n0.1\n0.1,a\n0.5,a\n").unwrap();
    let text = format!("arrivals = \"trace {}\"\n{GOOD}", trace.display());
    let result = driven(&plan(&text), &Address::Null, None);
    assert_eq!((result.total.intended, result.total.ok), (4, 4));
    std::fs::write(&trace, "0.5\n0.1\n").unwrap();
    let error = not_driven(&plan(&text));
    assert!(error.contains("line 2") && error.contains("0.1 comes after 0.5"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_rate_that_the_driver_cannot_keep_makes_the_result_invalid() {
    let text =
        "rate = \"20M\"\nfor = \"300ms\"\nconnections = 1\narrivals = \"constant\"\n".to_owned() + GOOD;
    let result = driven(&plan(&text), &Address::Null, None);
    assert!(!result.valid && !result.invalid_because.is_empty());
    assert!(result.driver.late_by_driver > result.total.intended / 2, "{:?}", result.driver.late_by_driver);
}

#[test]
fn a_run_that_ends_at_once_has_all_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("now.csv");
    std::fs::write(&trace, "0.0\n0.0\n").unwrap();
    let text = format!("arrivals = \"trace {}\"\n{GOOD}", trace.display());
    let result = driven(&plan(&text), &Address::Null, None);
    assert_eq!((result.total.intended, result.total.latency.percentiles.count), (2, 2));
}

#[test]
fn chaos_after_the_last_moment_of_a_trace_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("times.csv");
    std::fs::write(&trace, "0.0\n0.5\n").unwrap();
    let text =
        |every| format!("arrivals = \"trace {}\"\nchaos = \"true every {every}\"\n{GOOD}", trace.display());
    let error = not_driven(&plan(&text("10s")));
    assert!(error.contains("true every 10.0 s: the run ends before the first time"), "{error}");
    assert!(!driven(&plan(&text("200ms")), &Address::Null, None).chaos.is_empty());
}

#[test]
fn chaos_that_takes_longer_than_the_time_between_two_ends_with_the_run() {
    let text = format!("rate = 100\nfor = \"500ms\"\nchaos = \"sleep 0.3 every 100ms\"\n{GOOD}");
    let result = driven(&plan(&text), &Address::Null, None);
    assert!(result.total.intended > 0 && !result.chaos.is_empty(), "{:?}", result.chaos);
}

#[test]
fn a_part_of_a_run_has_no_checks() {
    let mut plan = plan(&format!("for = \"50ms\"\n{GOOD}[[checks]]\nname = \"c\"\nsql = \"SELECT 1\"\n"));
    plan.part = (1, 2);
    let error = not_driven(&plan);
    assert!(error.contains("checks in a part of a run") && error.contains("--no-proof"), "{error}");
    plan.proof = false;
    assert!(driven(&plan, &Address::Null, None).proof.is_empty());
}
