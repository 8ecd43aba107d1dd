//! What happens to the table.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, ListArray, StringArray, StructArray,
    TimestampMillisecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_source::{Kind, ParquetFiles};

use crate::cluster::{
    Cluster, append, keyed, people, people_from, run, small, source_of, verify, with_control,
};

#[test]
fn a_file_arrives_over_either_transport_and_is_verified() {
    for transport in [Transport::Http, Transport::Pg, Transport::Auto] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let (_kept, source) = people(2_500);
        let target = cluster.target(&table, CrateOptions { batch_rows: 300, ..keyed(transport) });
        let options = LoadOptions { verify: true, ..small() };
        let report = run(&source, &target, &options).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.state), (2_500, 2_500, LoadState::New));
        assert!(report.verified.unwrap().matches());
        assert_eq!(cluster.count(&table), 2_500);
        assert!(verify(&source, &target).matches());
        if let Some(standin) = &cluster.standin {
            assert_eq!(standin.unnests() > 0, transport != Transport::Http);
            assert_eq!(standin.bulks() > 0, transport == Transport::Http);
        }
        let again = run(&source, &target, &options).unwrap();
        assert_eq!((again.state, again.rows_loaded), (LoadState::Complete, 0));
    }
}

#[test]
fn a_table_that_exists_is_refused_appended_to_or_replaced() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let (_a, first) = people(700);
    let (_b, second) = people(300);
    let target = cluster.target(&table, keyed(Transport::Http));
    run(&first, &target, &small()).unwrap();
    let error = run(&second, &target, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    let report = run(&second, &append(target.clone()), &LoadOptions { verify: true, ..small() }).unwrap();
    assert!(report.verified.unwrap().matches());
    assert_eq!(cluster.count(&table), 1_000);
    // The same append again does nothing.
    let again = run(&second, &append(target.clone()), &small()).unwrap();
    assert_eq!(again.state, LoadState::Complete);
    let replace = target.mode(Mode::Replace);
    run(&second, &replace, &small()).unwrap();
    assert_eq!(cluster.count(&table), 300);
    assert!(verify(&second, &replace).matches());
    let difference = verify(&first, &replace);
    assert_eq!((difference.source.rows, difference.target.rows), (700, 300));
}

#[test]
fn the_plan_of_an_append_shows_the_types_and_the_key_of_the_table() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"id\" NUMERIC(30,2) PRIMARY KEY, \"name\" TEXT) WITH (number_of_replicas = '0')"
    ));
    let (_kept, source) = people(10);
    let target = append(cluster.target(&table, CrateOptions::default()));
    let plan = with_control(|control| target.explain(&source, &small(), control)).unwrap();
    assert_eq!(plan.delivery, "exactly once, by the primary key id, which the server looks up for each row");
    let types: Vec<&str> = plan.columns.iter().map(|column| column.crate_type.as_str()).collect();
    assert_eq!(types, ["NUMERIC(30,2)", "TEXT"]);
    assert_eq!(plan.columns[0].sent_as, "binary _numeric");
    let missing = append(cluster.target(&cluster.table(), CrateOptions::default()));
    let error = with_control(|control| missing.explain(&source, &small(), control)).unwrap_err();
    assert_eq!(error.kind(), Kind::Schema);
}

#[test]
fn a_verification_names_the_columns_whose_values_differ() {
    let cluster = Cluster::any();
    let columns = |names: [&str; 3], amounts: [f64; 3]| -> Vec<(&str, ArrayRef)> {
        let tags = ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some([Some(1), None]),
            None,
            Some([None, Some(2)]),
        ]);
        vec![
            ("id", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("name", Arc::new(StringArray::from(names.to_vec()))),
            ("amount", Arc::new(Float64Array::from(amounts.to_vec()))),
            ("tags", Arc::new(tags)),
        ]
    };
    let (names, amounts) = (["a \"b\"", "b", "null"], [1.5, 2.25, f64::NAN]);
    let (_kept, source) = source_of(columns(names, amounts), 2);
    for transport in [Transport::Http, Transport::Pg] {
        let target = cluster.target(&cluster.table(), keyed(transport));
        run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!(verify(&source, &target).differing, [""; 0]);
        let (_a, other) = source_of(columns(names, [1.5, 2.25, 0.0]), 2);
        assert_eq!(verify(&other, &target).differing, ["amount"]);
        let (_b, other) = source_of(columns(["a \"b\"", "c", "null"], [1.5, 2.0, f64::NAN]), 2);
        assert_eq!(verify(&other, &target).differing, ["name", "amount"]);
        // Each column holds the same values, the rows do not.
        let (_c, other) = source_of(columns(["b", "a \"b\"", "null"], amounts), 2);
        let swapped = verify(&other, &target);
        assert!(!swapped.matches() && swapped.differing.is_empty());
    }
}

#[test]
fn columns_are_chosen_renamed_and_matched_by_position() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!("CREATE TABLE doc.\"{table}\" (\"label\" TEXT, \"number\" BIGINT, \"more\" TEXT) WITH (number_of_replicas = '0')"));
    let (_kept, source) = people(400);
    let source = source.select(&["name".into(), "id".into()], &[]).unwrap();
    let options = CrateOptions { at_least_once: true, transport: Transport::Http, ..CrateOptions::default() };
    let target = append(cluster.target(&table, options)).with(|options| options.by_position = true);
    run(&source, &target, &small()).unwrap();
    assert_eq!(cluster.count(&table), 400);
    let verification = verify(&source, &target);
    assert!(verification.matches());
    assert_eq!(verification.not_compared, ["more"]);
    // By name: the names have to match the table's.
    let by_name = target.with(|options| options.by_position = false);
    let error = run(&source, &by_name, &small()).unwrap_err();
    assert!(error.to_string().contains("\"name\" is not in the table"), "{error}");
    let renamed =
        source.select(&[], &[("name".into(), "label".into()), ("id".into(), "number".into())]).unwrap();
    run(&renamed, &by_name, &LoadOptions { again: true, ..small() }).unwrap();
    assert_eq!(cluster.count(&table), 800);
}

#[test]
fn partitions_shards_and_storage_are_as_asked_for() {
    use arrow_array::{Int64Array, StringArray, TimestampMillisecondArray};
    use std::sync::Arc;
    let cluster = Cluster::any();
    let table = cluster.table();
    let month = 31 * 86_400_000i64;
    let (_kept, source) = crate::cluster::source_of(
        vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..90))),
            ("at", Arc::new(TimestampMillisecondArray::from_iter_values((0..90).map(|i| i % 3 * month)))),
            ("text", Arc::new(StringArray::from_iter_values((0..90).map(|i| "x".repeat(i * 1000))))),
        ],
        1000,
    );
    let options = CrateOptions {
        partition_by: Some("date_trunc('month', at)".into()),
        shards: Some(2),
        replicas: Some("0".into()),
        primary_key: vec!["id".into()],
        long_text: sawmill_cratedb::LongText::Noindex,
        no_columnstore: true,
        no_index: vec!["at".into()],
        transport: Transport::Http,
        ..CrateOptions::default()
    };
    let target = cluster.target(&table, options);
    let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
    assert!(report.verified.unwrap().matches());
    let ddl = cluster.sql(&format!("SHOW CREATE TABLE doc.\"{table}\""));
    assert!(ddl[0][0].as_str().unwrap().contains("at_month"), "{ddl:?}");
}

#[test]
fn a_decimal_of_an_existing_table_has_the_scale_of_the_column_and_not_of_a_field() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"o\" OBJECT(STRICT) AS (\"amount\" NUMERIC(10,1)), \"id\" BIGINT PRIMARY KEY, \
         \"amount\" NUMERIC(20,4)) WITH (number_of_replicas = '0')"
    ));
    let amounts = Decimal128Array::from(vec![12_345, -1]).with_precision_and_scale(12, 3).unwrap();
    let ids = Int64Array::from(vec![1, 2]);
    let (_kept, source) = source_of(vec![("id", Arc::new(ids)), ("amount", Arc::new(amounts))], 10);
    for transport in [Transport::Http, Transport::Pg] {
        let options = CrateOptions { transport, ..CrateOptions::default() };
        let target = append(cluster.target(&table, options));
        run(&source, &target, &small()).unwrap();
        assert!(verify(&source, &target).matches());
    }
}

#[test]
fn a_row_without_a_partition_has_no_key_and_is_rejected() {
    let cluster = Cluster::any();
    let moments = (0..90).map(|i| (i != 40).then_some(i * 86_400_000));
    let ids = Int64Array::from_iter_values(0..90);
    let (kept, source) = source_of(
        vec![("id", Arc::new(ids)), ("at", Arc::new(TimestampMillisecondArray::from_iter(moments)))],
        1000,
    );
    for transport in [Transport::Http, Transport::Pg] {
        let options = CrateOptions {
            partition_by: Some("date_trunc('month', at)".into()),
            rejects: Some(kept.path().join("rejects.ndjson")),
            ..keyed(transport)
        };
        let target = cluster.target(&cluster.table(), options);
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (89, 1));
        let rejected = std::fs::read_to_string(kept.path().join("rejects.ndjson")).unwrap();
        assert!(rejected.contains("\"row\":40,") && rejected.to_lowercase().contains("null"), "{rejected}");
    }
}

#[test]
fn empty_objects_stay_apart_from_null() {
    let cluster = Cluster::any();
    let fields = Fields::from(vec![Field::new("a", DataType::Int64, true)]);
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, None]));
    let valid = NullBuffer::from(vec![true, true, false]);
    let objects = StructArray::new(fields, vec![values], Some(valid));
    let (_kept, source) =
        source_of(vec![("id", Arc::new(Int64Array::from(vec![0, 1, 2]))), ("o", Arc::new(objects))], 10);
    for transport in [Transport::Http, Transport::Pg] {
        let table = cluster.table();
        let target = cluster.target(&table, keyed(transport));
        run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        let rows = cluster.sql(&format!("SELECT \"o\" FROM \"doc\".\"{table}\" ORDER BY \"id\""));
        assert_eq!(serde_json::json!(rows), serde_json::json!([[{"a": 1}], [{}], [null]]));
    }
}

#[test]
fn what_crate_cannot_take_is_refused_before_a_row_is_sent_with_a_way_out() {
    // No server is needed to know this.
    let target = |options| {
        sawmill_cratedb::CrateDb::new("crate://127.0.0.1:1".parse().unwrap(), "t".parse().unwrap())
            .options(options)
    };
    for (name, proposal) in [("a.b", "a_b"), ("x[1]", "x_1"), ("_id", "id")] {
        let renamed = source_named(name);
        let error = run(&renamed.1, &target(keyed(Transport::Http)), &small()).unwrap_err();
        assert!(error.to_string().contains(&format!("--rename '{name}={proposal}'")), "{error}");
    }
}

fn source_named(name: &str) -> (tempfile::TempDir, ParquetFiles) {
    let (kept, source) = people(10);
    (kept, source.select(&[], &[("name".into(), name.into())]).unwrap())
}

#[test]
fn a_load_can_be_forgotten() {
    use sawmill_source::Control;
    use std::sync::atomic::AtomicBool;
    let cluster = Cluster::standin();
    let (_kept, source) = people(700);
    let target = cluster.target("t", CrateOptions { batch_rows: 100, ..keyed(Transport::Http) });
    cluster.standin.as_ref().unwrap().faults().plan([
        None,
        None,
        Some(sawmill_cratedb_standin::Fault::Disappear),
    ]);
    run(&source, &target, &LoadOptions { retries: 0, degree: 1, ..small() }).unwrap_err();
    cluster.standin.as_ref().unwrap().restart(0);
    let (cancel, profile) = (AtomicBool::new(false), sawmill_profile::Profile::new());
    let phase = profile.phase("forget");
    let forgotten = target.forget(false, &Control::new(&cancel, &phase)).unwrap();
    assert!(forgotten.staging_dropped && !forgotten.table_dropped, "{forgotten:?}");
    assert_eq!(forgotten.loads, 1);
    assert_eq!(cluster.standin.as_ref().unwrap().engine().table_names(), Vec::<String>::new());
}

#[test]
fn an_interrupted_replacement_begins_again_with_corrected_and_with_more_files() {
    let cluster = Cluster::standin();
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first.parquet", "second.parquet"].map(|name| folder.path().join(name));
    let options = CrateOptions { batch_rows: 100, ..keyed(Transport::Http) };
    let target = cluster.target("t", options).mode(Mode::Replace);
    let interrupted = || {
        cluster.standin.as_ref().unwrap().faults().plan([None, None, Some(Fault::Blocked)]);
        let source = ParquetFiles::open(&[&first]).unwrap();
        let error = run(&source, &target, &LoadOptions { degree: 1, ..small() }).unwrap_err();
        assert!(error.what().contains("the table takes no rows"), "{error}");
    };
    people_from(&first, 0, 1000);
    interrupted();
    people_from(&first, 0, 1200);
    interrupted();
    people_from(&second, 1200, 50);
    let source = ParquetFiles::open(&[&first, &second]).unwrap();
    let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
    assert_eq!((report.state, report.rows_loaded), (LoadState::New, 1250));
    assert_eq!(cluster.count("t"), 1250);
    assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::Complete);
}
