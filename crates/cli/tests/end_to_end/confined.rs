//! `--confine`: no file outside of a folder is read, whatever names it.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::harness::sawmill;

#[test]
fn neither_a_link_nor_a_list_nor_a_tables_log_leads_out_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    sawmill(["gen", "contacts", "--rows", "10", "--out", &at("secret.parquet")]).ok();
    for day in ["day=1", "day=2"] {
        fs::create_dir_all(at(&format!("in/{day}"))).unwrap();
        fs::copy(at("secret.parquet"), at(&format!("in/{day}/a.parquet"))).unwrap();
    }
    let footer = |input: &str| sawmill(["footer", input, "--confine", &at("in")]);
    footer(&at("in")).ok();
    symlink("../../secret.parquet", at("in/day=1/b.parquet")).unwrap();
    sawmill(["footer", &at("in")]).ok();
    for input in [at("in"), at("secret.parquet"), at("in/../secret.parquet"), at("in/day=1/*")] {
        let error = footer(&input).fails(1);
        assert!(error.contains("the file is outside of") && error.contains("--confine"), "{input}: {error}");
    }
    fs::write(at("list"), at("secret.parquet")).unwrap();
    assert!(footer(&format!("@{}", at("list"))).fails(1).contains("outside of"));
    fs::remove_file(at("in/day=1/b.parquet")).unwrap();
    footer(&at("in")).ok();

    sawmill(["gen", "contacts", "--rows", "10", "--table-format", "delta", "--out", &at("in/t")]).ok();
    footer(&format!("delta:{}", at("in/t"))).ok();
    let log = at("in/t/_delta_log/00000000000000000000.json");
    let text = fs::read_to_string(&log).unwrap();
    let start = text.find("\"path\":\"").unwrap() + 8;
    let end = start + text[start..].find('"').unwrap();
    for elsewhere in [at("secret.parquet"), "../../secret.parquet".to_owned()] {
        fs::write(&log, format!("{}{elsewhere}{}", &text[..start], &text[end..])).unwrap();
        assert!(footer(&format!("delta:{}", at("in/t"))).fails(1).contains("outside of"), "{elsewhere}");
    }
}

#[test]
fn what_takes_the_name_of_a_file_after_it_was_checked_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("in")).unwrap();
    for (name, rows) in [("secret", "77"), ("own", "10")] {
        sawmill(["gen", "contacts", "--rows", rows, "--out", &at(&format!("{name}.parquet"))]).ok();
    }
    fs::copy(at("own.parquet"), at("in/a.parquet")).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                symlink("../secret.parquet", at("in/_link")).unwrap();
                fs::rename(at("in/_link"), at("in/a.parquet")).unwrap();
                std::thread::sleep(Duration::from_micros(300));
                fs::hard_link(at("own.parquet"), at("in/_own")).unwrap();
                fs::rename(at("in/_own"), at("in/a.parquet")).unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        let run = || sawmill(["footer", &at("in/a.parquet"), "--confine", &at("in"), "--json"]);
        let shown: Vec<String> = (0..40).map(|_| run().out).collect();
        is_over.store(true, Relaxed);
        assert!(shown.iter().any(|shown| shown.contains("\"rows\": 10,")), "{shown:?}");
        assert!(!shown.iter().any(|shown| shown.contains("\"rows\": 77,")), "{shown:?}");
    });
}
