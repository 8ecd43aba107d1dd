//! Which objects an output may replace, and what a store that does not answer means.

use super::s3::S3;
use super::web::Fate;
use super::{served, with_s3};

const TEXT: &str = "id,name\n1,a\n2,b\n";

#[test]
fn an_input_is_not_replaced_whatever_the_spelling_of_its_url() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("in/x.csv"), TEXT).unwrap();
    let Some(s3) = S3::with("data", folder.path()) else { return };
    s3.sawmill(&["convert", "s3://data/in/x.csv", "--out", "s3://data/in/x.parquet"]).ok();
    for (input, out, why) in [
        ("s3a://data/in/x.csv", "s3://data/in/x.csv", "one of the inputs"),
        ("s3://data/in/x.csv", "S3A://data/in/x.csv", "one of the inputs"),
        ("s3a://data/in/x.parquet", "s3://data/in/x.parquet", "one of the inputs"),
        ("s3://data/in/", "s3a://data/in/x.parquet", "one of the inputs"),
        ("s3a://data/in/x.parquet", "s3://data/in", "an input is in the folder"),
        ("s3://data/in/x.csv", "s3://data/in//x.csv", "an empty part"),
        ("s3://data/in/x.csv", "s3://data//in/x.csv", "an empty part"),
        ("s3://data/in/x.csv", "s3://data/zz//x.parquet", "an empty part"),
    ] {
        let error = s3.sawmill(&["convert", input, "--overwrite", "--out", out]).fails(2);
        assert!(error.contains(why), "{input} {out}: {error}");
    }
    for name in ["x.csv", "x.parquet"] {
        let signed =
            format!("{}/data/in/{name}?AWSAccessKeyId=a&Signature=0&Expires=4102444800", s3.endpoint);
        let out = format!("s3://data/in/{name}");
        let error =
            s3.sawmill(&["convert", &signed, "--columns", "id", "--overwrite", "--out", &out]).fails(2);
        assert!(error.contains("one of the inputs, or a copy of it"), "{error}");
    }
    let like = ["gen", "--like", "s3a://data/in/x.parquet", "--rows", "9", "--overwrite", "--out"];
    let error = s3.sawmill(&[&like[..], &["s3://data/in/x.parquet"]].concat());
    assert!(error.code != Some(0) && error.err.contains("would be replaced"), "{}", error.err);
    assert_eq!(s3.object("data", "in/x.csv").unwrap(), TEXT.as_bytes());
    assert_eq!(s3.objects("data"), ["in/x.csv", "in/x.parquet"]);
}

#[test]
fn an_object_exists_only_if_the_store_says_so() {
    let refused = |status, code| Fate::Refused(status, code);
    for (fate, why) in [
        (refused(503, "<Error><Code>SlowDown</Code></Error>"), "503 SlowDown"),
        (refused(400, "<Error><Code>InvalidRequest</Code></Error>"), "400 InvalidRequest"),
        (refused(403, "<Error><Code>AccessDenied</Code></Error>"), "403 AccessDenied"),
        (Fate::Reset, "the connection to the store broke"),
    ] {
        let (folder, web) = served("10", move |_, _| fate.clone());
        let input = folder.path().join("trips/data/contacts-00000.parquet");
        let args = ["convert", input.to_str().unwrap(), "--out", "s3://trips/new.parquet"];
        // A folder is listed before anything is written to it.
        for args in [&args[..], &["gen", "contacts", "--rows", "5", "--out", "s3://trips/new/"]] {
            let ran = with_s3(&web, args);
            assert!(ran.code != Some(0) && ran.err.contains(why), "{}", ran.err);
            assert!(!ran.err.contains("--overwrite"), "{}", ran.err);
            assert_eq!(ran.err.contains("check the credentials"), why.starts_with("403"), "{}", ran.err);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.csv"), TEXT).unwrap();
    std::fs::write(folder.path().join("empty.csv"), "").unwrap();
    let Some(s3) = S3::with("data", folder.path()) else { return };
    for there in ["s3://data/x.csv", "s3://data/empty.csv"] {
        let input = folder.path().join("x.csv");
        let error = s3.sawmill(&["convert", input.to_str().unwrap(), "--out", there]).fails(2);
        assert!(error.contains("the object exists already") && error.contains("--overwrite"), "{error}");
    }
}
