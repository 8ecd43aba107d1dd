//! `sawmill footer` over URLs.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::s3::S3;
use super::web::Fate;
use super::{contacts, served, with_s3};
use crate::harness::{Ran, sawmill};

const OBJECT: &str = "s3://trips/data/contacts-00000.parquet";

fn rows(ran: Ran) -> Vec<i64> {
    let json = ran.ok().json();
    json["files"].as_array().unwrap().iter().map(|file| file["rows"].as_i64().unwrap()).collect()
}

#[test]
fn objects_of_s3_are_found_by_name_prefix_and_pattern_as_files_are() {
    let folder = tempfile::tempdir().unwrap();
    contacts(folder.path(), "3000", "3");
    let trips = folder.path().join("trips");
    std::fs::create_dir_all(trips.join("data/_temporary")).unwrap();
    for copy in ["data/_temporary/x.parquet", "data/copy=1.parquet", "other/y.parquet"] {
        std::fs::create_dir_all(trips.join(copy).parent().unwrap()).unwrap();
        std::fs::copy(trips.join("data/contacts-00000.parquet"), trips.join(copy)).unwrap();
    }
    let Some(s3) = S3::with("trips", &trips) else { return };
    let files = |args: &[&str]| -> Vec<String> {
        let json = s3.sawmill(&[&["footer", "--json"], args].concat()).ok().json();
        let files = json["files"].as_array().unwrap().iter();
        files.map(|file| file["file"].as_str().unwrap().replace("s3://trips/", "")).collect()
    };
    let contacts: Vec<String> = (0..3).map(|n| format!("data/contacts-0000{n}.parquet")).collect();
    assert_eq!(files(&["s3://trips/data/contacts-*.parquet"]), contacts);
    assert_eq!(files(&["s3://trips/data/contacts-0000[01].parquet"]), contacts[..2]);
    let below = [contacts.clone(), vec!["data/copy=1.parquet".to_owned()]].concat();
    assert_eq!(files(&["s3://trips/data"]), below);
    assert_eq!(files(&["s3://trips/data/"]), below);
    assert_eq!(files(&["s3://trips"]), [below.clone(), vec!["other/y.parquet".to_owned()]].concat());
    assert_eq!(files(&["s3://trips/**/?.parquet"]), ["other/y.parquet"]);
    assert_eq!(files(&["s3://trips/data/contacts-00000.parquet"]), contacts[..1]);
    // With files of this machine, and from a list.
    let list = folder.path().join("list");
    let local = trips.join("other/y.parquet");
    std::fs::write(&list, format!("s3://trips/other/y.parquet\n{}\n", local.display())).unwrap();
    let named = files(&[&format!("@{}", list.display())]);
    assert_eq!(named, ["other/y.parquet".to_owned(), local.display().to_string()]);
    for (wrong, why) in [
        ("s3://trips/none-*.parquet", "no objects match"),
        ("s3://trips/none/", "no .parquet files"),
        ("s3://trips/data/_temporary/none.parquet", "there is no such object"),
        ("s3://nobucket/x.parquet", "there is no such object"),
    ] {
        let error = s3.sawmill(&["footer", wrong]).fails(1);
        assert!(error.contains(why) && error.contains(wrong), "{error}");
    }
}

#[test]
fn an_objects_views_are_those_of_the_file() {
    let (folder, web) = served("20k", |_, _| Fate::Answered);
    let file = folder.path().join("trips/data/contacts-00000.parquet");
    for view in [
        "--schema",
        "--row-groups",
        "--bounds",
        "--data-pages",
        "--metadata",
        "--sizes",
        "--dump",
        "--ndjson",
    ] {
        let here = sawmill(["footer", file.to_str().unwrap(), view]).ok().out;
        let there = with_s3(&web, &["footer", OBJECT, view]).ok().out;
        assert_eq!(there.replace(OBJECT, ""), here.replace(file.to_str().unwrap(), ""), "{view}");
    }
    with_s3(&web, &["footer", OBJECT, "--check", "--pages"]).ok();
}

#[test]
fn a_footer_takes_one_request_and_a_longer_one_two() {
    let (_folder, web) = served("20k", |_, _| Fate::Answered);
    let requests = |args: &[&str]| -> Vec<String> {
        let before = web.asked().len();
        let args = [&["footer", OBJECT], args].concat();
        assert_eq!(rows(with_s3(&web, &[&args[..], &["--json"]].concat())), [20_000]);
        web.asked()[before..].iter().map(|asked| asked.range.clone().unwrap_or_default()).collect()
    };
    assert_eq!(requests(&[]), ["bytes=-65536"]);
    let short = requests(&["--tail-hint", "100"]);
    assert_eq!((short.len(), short[0].as_str()), (2, "bytes=-100"), "{short:?}");
    // The page indexes of all column chunks lie together.
    let indexes = requests(&["--tail-hint", "100", "--data-pages"]);
    assert!(indexes.len() <= 3, "{indexes:?}");
}

#[test]
fn many_objects_are_read_at_the_same_time() {
    const AT_ONCE: usize = 32;
    let arrived = Arc::new((Mutex::new(0), Condvar::new()));
    // None is answered until all that may be under way at once are.
    let (folder, web) = served("10", move |_, _| {
        let mut count = arrived.0.lock().unwrap();
        *count += 1;
        arrived.1.notify_all();
        let few = |count: &mut usize| *count < AT_ONCE;
        let waited = arrived.1.wait_timeout_while(count, Duration::from_secs(60), few).unwrap().1;
        if waited.timed_out() { Fate::Refused(400, "alone") } else { Fate::Answered }
    });
    let data = folder.path().join("trips/data");
    let list: String = (0..64)
        .map(|n| {
            std::fs::copy(data.join("contacts-00000.parquet"), data.join(format!("{n}.parquet"))).unwrap();
            format!("http://{}/trips/data/{n}.parquet\n", web.address)
        })
        .collect();
    let named = folder.path().join("list");
    std::fs::write(&named, list).unwrap();
    let named = format!("@{}", named.display());
    assert_eq!(rows(sawmill(["footer", &named, "--json", "--requests", &AT_ONCE.to_string()])).len(), 64);
}

#[test]
fn web_servers_need_ranges_and_no_tools_of_stores() {
    let (_folder, web) = served("1000", |_, _| Fate::Answered);
    let url = format!("http://{}/trips/data/contacts-00000.parquet", web.address);
    assert_eq!(rows(sawmill(["footer", &url, "--json"])), [1000]);
    let signed = format!("{url}?X-Signature=SECRET");
    let shown = sawmill(["footer", &signed]).ok();
    assert!(!shown.out.contains("SECRET"), "{}", shown.out);
    let error = sawmill(["footer", &format!("http://{}/none.parquet?sig=SECRET", web.address)]).fails(1);
    assert!(error.contains("there is no such object") && !error.contains("SECRET"), "{error}");
    let (_folder, web) = served("1000", |_, _| Fate::NoRange);
    let error =
        sawmill(["footer", &format!("http://{}/trips/data/contacts-00000.parquet", web.address)]).fails(1);
    assert!(error.contains("does not answer requests for ranges"), "{error}");
}

#[test]
fn throttled_cut_and_reset_requests_are_repeated() {
    let (_folder, web) = served("20k", |_, before| match before {
        0 => Fate::Refused(503, "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"),
        1 => Fate::Refused(429, ""),
        2 => Fate::Reset,
        3 => Fate::CutAfter(1000),
        _ => Fate::Answered,
    });
    assert_eq!(rows(with_s3(&web, &["footer", OBJECT, "--json"])), [20_000]);
    assert!(web.asked().len() >= 5, "{:?}", web.asked());
}

#[test]
fn a_store_that_stays_broken_is_an_error_that_names_the_object_and_no_secret() {
    let expired =
        "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
    for (fate, why) in [
        (Fate::Refused(403, expired), "403 ExpiredToken: The provided token has expired."),
        (Fate::Refused(400, expired), "400 ExpiredToken"),
        (Fate::Short, "not what was asked for"),
        (Fate::Refused(416, ""), "has no bytes"),
    ] {
        let case = format!("{fate:?}");
        let (_folder, web) = served("1000", move |_, _| fate.clone());
        let error = with_s3(&web, &["footer", OBJECT]).fails(1);
        assert!(error.contains(why) && error.contains(OBJECT), "{case}: {error}");
        assert!(!error.contains("EXAMPLE"), "{error}");
    }
}

#[test]
fn an_object_that_changes_between_two_reads_is_an_error() {
    // The second read asks for the version of the first.
    let (_folder, web) = served("20k", |_, before| if before == 0 { Fate::Answered } else { Fate::OtherTag });
    let error = with_s3(&web, &["footer", OBJECT, "--tail-hint", "100"]).fails(1);
    assert!(error.contains("the object changed while it was read") && error.contains(OBJECT), "{error}");
    assert!(web.asked()[1].if_match.is_some(), "{:?}", web.asked());
}

#[test]
fn anonymous_requests_carry_no_signature_and_others_do() {
    let (_folder, web) = served("1000", |_, _| Fate::Answered);
    with_s3(&web, &["footer", OBJECT]).ok();
    assert!(web.asked().iter().all(|asked| asked.authorized));
    let before = web.asked().len();
    with_s3(&web, &["footer", OBJECT, "--store", "anonymous=true"]).ok();
    assert!(web.asked()[before..].iter().all(|asked| !asked.authorized));
}

#[test]
fn options_that_no_store_has_and_secrets_on_the_command_line_are_refused() {
    for (option, why) in [
        ("regoin=eu", "no store has this option"),
        ("secret_access_key=SECRET", "visible to all users of this machine"),
    ] {
        let error = sawmill(["footer", OBJECT, "--store", option]).fails(2);
        assert!(error.contains(why) && !error.contains("=SECRET"), "{error}");
    }
    let error = sawmill(["footer", "ftp://me:SECRET@host/x.parquet"]).fails(2);
    assert!(error.contains("files cannot be read from ftp://") && !error.contains("SECRET"), "{error}");
}

#[test]
fn objects_with_odd_names_are_found_by_name_and_by_folder_and_empty_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("one.parquet");
    sawmill(["gen", "contacts", "--rows", "100", "--out", out.to_str().unwrap()]).ok();
    let Some(s3) = S3::empty("odd") else { return };
    let bytes = std::fs::read(&out).unwrap();
    let encoded = [
        ("sp%20ace/a%20b.parquet", "sp ace/a b.parquet"),
        ("pct/a%2520b%25.parquet", "pct/a%20b%.parquet"),
        ("uni/%C3%BC.parquet", "uni/ü.parquet"),
        ("br/a%5B1%5D.parquet", "br/a[1].parquet"),
        ("plus/a%2Bb.parquet", "plus/a+b.parquet"),
    ];
    for (target, key) in encoded {
        s3.put("odd", target, &bytes);
        let (below, _) = key.split_once('/').unwrap();
        for named in [format!("s3://odd/{key}"), format!("s3://odd/{below}")] {
            let ran = s3.sawmill(&["footer", &named]).ok();
            assert!(ran.out.contains(&format!("s3://odd/{key}")), "{named}: {}", ran.out);
        }
    }
    s3.put("odd", "empty/e.parquet", b"");
    let empty = s3.sawmill(&["footer", "s3://odd/empty"]);
    assert!(empty.code == Some(1) && empty.err.contains("an empty one"), "{}", empty.err);
    s3.put("odd", "double//x.parquet", &bytes);
    let double = s3.sawmill(&["footer", "s3://odd/double"]);
    assert!(double.code != Some(0) && double.err.contains("double//x.parquet"), "{}", double.err);
    assert!(double.err.contains("leave out empty parts, ., .. and control characters"), "{}", double.err);
    let others = s3.sawmill(&["footer", "s3://odd/uni/*.parquet"]).ok();
    assert!(others.out.contains("ü.parquet"), "{}", others.out);
}
