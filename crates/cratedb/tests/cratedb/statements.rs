//! Rows of statements: none is doubled by a repeated request, and an error says which rows are there.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use sawmill_cratedb::{CrateDb, CrateOptions};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::Mode;
use sawmill_source::Error;

use crate::cluster::{Cluster, with_control};

/// `id bigint, name text` with `rows` rows from `first` on.
fn people(first: i64, rows: i64) -> RecordBatch {
    let ids = first..first + rows;
    let names = ids.clone().map(|id| (id % 3 != 0).then(|| format!("name {id}")));
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids)), true),
        ("name", Arc::new(StringArray::from_iter(names)), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn target(cluster: &Cluster, table: &str, mode: Mode) -> CrateDb {
    cluster.target(table, CrateOptions { batch_rows: 100, ..CrateOptions::default() }).mode(mode)
}

/// Inserts partitions of batches, one partition after the other.
fn insert(target: &CrateDb, partitions: &[Vec<RecordBatch>]) -> Result<u64, Error> {
    let schema: SchemaRef = partitions[0][0].schema();
    with_control(|control| {
        target.insert(&schema, control, |insertion| {
            for (number, batches) in partitions.iter().enumerate() {
                let mut partition = insertion.partition(number as u32);
                batches.iter().try_for_each(|batch| partition.send(batch, control))?;
                partition.end(control)?;
            }
            Ok(())
        })
    })
}

fn exists(cluster: &Cluster, beginning: &str) -> bool {
    let tables = cluster.sql("SELECT table_name FROM information_schema.tables");
    tables.iter().any(|row| row[0].as_str().unwrap().starts_with(beginning))
}

fn records(cluster: &Cluster) -> usize {
    let table = format!("\"{}\".\"loads\"", cluster.checkpoints());
    cluster.sql(&format!("REFRESH TABLE {table}"));
    cluster.sql(&format!("SELECT \"load_id\" FROM {table}")).len()
}

#[test]
fn a_new_table_has_all_rows_once_whatever_becomes_of_requests() {
    let cluster = Cluster::any();
    let table = cluster.table();
    if let Some(standin) = &cluster.standin {
        standin.faults().plan([
            Some(Fault::DropAfter),
            None,
            Some(Fault::DropInTheMiddle),
            Some(Fault::DropBefore),
            Some(Fault::Unavailable),
            Some(Fault::LostShard),
        ]);
    }
    let partitions = [vec![people(0, 450), people(450, 450)], vec![people(900, 350)]];
    assert_eq!(insert(&target(&cluster, &table, Mode::Create), &partitions), Ok(1250));
    assert_eq!(cluster.count(&table), 1250);
    assert!(!exists(&cluster, &format!("{table}__")));
    assert_eq!(records(&cluster), 0);
    // Without rows there is a table, too.
    let table = cluster.table();
    assert_eq!(insert(&target(&cluster, &table, Mode::Create), &[vec![people(0, 0)]]), Ok(0));
    assert_eq!(cluster.count(&table), 0);
    let error = insert(&target(&cluster, &table, Mode::Create), &[vec![people(0, 1)]]).unwrap_err();
    assert!(error.to_string().contains("there is a table or view of this name"), "{error}");
}

#[test]
fn a_new_table_is_not_there_if_a_row_is_refused() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let bad = [vec![people(0, 450), people(i64::MAX, 0), people(i64::MIN, 1)]];
    let error = insert(&target(&cluster, &table, Mode::Create), &bad).unwrap_err().to_string();
    let place = format!("table doc.{table}, partition 0 of the query, row 451");
    assert!(error.contains("the server refused a row") && error.contains(&place), "{error}");
    assert!(error.ends_with("the table was not created, and no row of the statement was kept"), "{error}");
    assert!(!exists(&cluster, &table));
    assert_eq!(records(&cluster), 0);
    assert_eq!(insert(&target(&cluster, &table, Mode::Create), &[vec![people(0, 450)]]), Ok(450));
}

#[test]
fn a_statement_into_a_table_with_a_key_may_run_again() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!("CREATE TABLE \"doc\".\"{table}\" (\"id\" BIGINT PRIMARY KEY, \"name\" TEXT)"));
    let append = target(&cluster, &table, Mode::Append);
    if let Some(standin) = &cluster.standin {
        standin.faults().plan([None, Some(Fault::DropAfter), Some(Fault::DropInTheMiddle)]);
    }
    assert_eq!(insert(&append, &[vec![people(0, 500)]]), Ok(500));
    assert_eq!(cluster.count(&table), 500);
    // The server counts the rows that are new.
    assert_eq!(insert(&append, &[vec![people(200, 500)]]), Ok(200));
    assert_eq!(cluster.count(&table), 700);
    let other = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(vec![1000, 3])) as ArrayRef, true),
        ("name", Arc::new(StringArray::from(vec!["new", "another"])) as ArrayRef, true),
    ]);
    let error = insert(&append, &[vec![other.unwrap()]]).unwrap_err().to_string();
    assert!(error.contains("another row with this primary key is in the table: \"id\" = 3"), "{error}");
    assert!(
        error.contains("; 1 row of the statement is in the table; run the same statement again: "),
        "{error}"
    );
    assert_eq!(cluster.count(&table), 701);
}

#[test]
fn a_statement_into_a_table_without_a_key_sends_no_row_twice() {
    let cluster = Cluster::standin();
    let table = cluster.table();
    cluster.sql(&format!("CREATE TABLE \"doc\".\"{table}\" (\"id\" BIGINT, \"name\" TEXT)"));
    let append = target(&cluster, &table, Mode::Append);
    let faults = cluster.standin.as_ref().unwrap().faults();
    // What had no effect is sent again.
    faults.plan([Some(Fault::Unavailable), None, Some(Fault::Busy), Some(Fault::LostShard)]);
    assert_eq!(insert(&append, &[vec![people(0, 500)]]), Ok(500));
    assert_eq!(cluster.count(&table), 500);
    for (fault, more) in [(Fault::DropAfter, 200), (Fault::DropInTheMiddle, 150)] {
        let before = cluster.count(&table);
        faults.plan([None, Some(fault)]);
        let error = insert(&append, &[vec![people(1000, 500)]]).unwrap_err().to_string();
        let expected = "100 rows of the statement, and up to 100 more rows of requests that got no answer are in the table; \
                        the columns include no primary key, so the same statement would insert these rows again: ";
        assert!(error.contains(expected), "{error}");
        assert_eq!(cluster.count(&table), before + more);
    }
}

#[test]
fn what_does_not_fit_is_refused_before_a_row_is_sent() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE \"doc\".\"{table}\" (\"id\" INTEGER, \"name\" TEXT, \"at\" TIMESTAMP WITH TIME ZONE, \"month\" TIMESTAMP \
         WITH TIME ZONE GENERATED ALWAYS AS date_trunc('month', \"at\"))"
    ));
    let append = target(&cluster, &table, Mode::Append);
    let error = insert(&append, &[vec![people(0, 5)]]).unwrap_err().to_string();
    assert!(error.contains("column \"id\"") && error.ends_with("in the SELECT of the statement"), "{error}");
    let columns = with_control(|control| append.columns_of_table(control)).unwrap();
    let expected = [("id", "INTEGER"), ("name", "TEXT"), ("at", "TIMESTAMP WITH TIME ZONE")];
    assert_eq!(columns, expected.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
    let absent = target(&cluster, "absent", Mode::Append);
    let error = insert(&absent, &[vec![people(0, 5)]]).unwrap_err().to_string();
    assert!(error.contains("the table does not exist - table doc.absent"), "{error}");
    assert_eq!(cluster.count(&table), 0);
}
