//! The written schema is the one that `docs/bench-results.md` describes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sawmill_profile::{
    Case, Commit, Filesystem, Profile, ResultFile, Run, Sampler, SamplerOptions, SideResult, Target,
    WaitKind, span, wait,
};

fn full_file() -> ResultFile {
    let own = Target::Pid(std::process::id());
    let sampler = Sampler::start(SamplerOptions::new().watch("server", &own)).unwrap();
    let profile = Profile::with_hardware();
    let phase = profile.phase("load");
    let attached = phase.attach("sender 1");
    {
        let _outer = span("batch");
        let _inner = wait(WaitKind::Network);
        std::thread::sleep(Duration::from_millis(30));
    }
    drop(attached);
    phase.finish();
    let run = |millis| Run { wall: Duration::from_millis(millis), ..Run::default() };
    let runs: Vec<Run> = [10, 11, 12, 10, 11].map(run).to_vec();
    let ours = SideResult {
        timeline: Some(sampler.stop()),
        folded_stacks: Some("main;work 3\n".into()),
        command: Some("sawmill gen".into()),
        ..SideResult::new("sawmill", 1, runs.clone()).with_phases(profile.phases())
    };
    let mut file = ResultFile::new("first", "sawmill bench load");
    file.cases
        .push(Case::new("load", BTreeMap::new(), vec![ours, SideResult::new("psql", 1, runs)]).unwrap());
    file.commit = Some(Commit { hash: "ab".repeat(20), title: "Measure".into(), changed: false });
    file.filesystems.push(Filesystem::default());
    file
}

fn keys(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            found.extend(fields.keys().cloned());
            fields.values().for_each(|value| keys(value, found));
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_written_field_is_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench-results.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let value: serde_json::Value = serde_json::from_str(&full_file().to_json().unwrap()).unwrap();
    let mut found = BTreeSet::new();
    keys(&value, &mut found);
    let undocumented: Vec<&String> = found.iter().filter(|key| !docs.contains(&format!("`{key}`"))).collect();
    assert!(undocumented.is_empty(), "{undocumented:?}");
}

#[test]
fn a_file_with_every_field_is_read_back_equal() {
    let file = full_file();
    assert_eq!(ResultFile::from_json(&file.to_json().unwrap(), "").unwrap(), file);
    let bottleneck = file.cases[0].sides[0].bottleneck.clone().unwrap();
    assert!(bottleneck.to_string().starts_with("the server was the limit: sender"), "{bottleneck}");
}

#[test]
fn statistics_of_other_runs_are_refused_by_file_and_field() {
    let mut value: serde_json::Value = serde_json::from_str(&full_file().to_json().unwrap()).unwrap();
    value["cases"][0]["sides"][1]["wall"]["outliers"] = serde_json::json!([5]);
    let error = ResultFile::from_json(&value.to_string(), "a.json").unwrap_err();
    assert!(error.what().contains("wall of load, psql") && error.place() == "a.json", "{error}");
    value["cases"][0]["sides"][0]["runs"] = serde_json::json!([]);
    let error = ResultFile::from_json(&value.to_string(), "a.json").unwrap_err();
    assert!(error.what().contains("wall of load, sawmill: 5 measurements in 0 runs"), "{error}");
}

#[test]
fn a_verdict_that_the_runs_do_not_show_is_refused() {
    let sound: serde_json::Value = serde_json::from_str(&full_file().to_json().unwrap()).unwrap();
    let case = |path: &str| format!("/cases/0/{path}");
    for (field, value, what) in [
        ("comparisons/0/verdict", "\"faster\"", "comparisons of load with psql: verdict"),
        ("comparisons/0/ratio", "0.5", "comparisons of load with psql: ratio is 0.5"),
        ("comparisons/0/interval/high", "0.9", "comparisons of load with psql: interval"),
        ("comparisons/0/with", "\"x\"", "comparisons of load with x: there is no such side"),
        ("sides/1/wall/median", "0.001", "wall of load, psql"),
        ("sides/1/runs/0/wall", "0.020", "wall of load, psql"),
    ] {
        let mut damaged = sound.clone();
        *damaged.pointer_mut(&case(field)).unwrap() = serde_json::from_str(value).unwrap();
        let error = ResultFile::from_json(&damaged.to_string(), "a.json").unwrap_err();
        assert!(error.what().contains(what) && error.place() == "a.json", "{field}: {error}");
    }
    let mut other_work = sound;
    other_work["cases"][0]["sides"][0]["runs"][0]["checksum"] = "1a".into();
    other_work["cases"][0]["sides"][1]["runs"][2]["checksum"] = "2b".into();
    let error = ResultFile::from_json(&other_work.to_string(), "a.json").unwrap_err();
    assert!(error.what().contains("load: the runs did not do the same work"), "{error}");
}

#[test]
fn unknown_fields_are_ignored() {
    let text = full_file().to_json().unwrap().replacen('{', "{\n  \"invented_later\": [1, 2],", 1);
    assert!(ResultFile::from_json(&text, "").is_ok());
}
