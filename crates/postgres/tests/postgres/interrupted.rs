//! Interrupted appends of changed files, whose rows stay in the table when the files are restored.

use sawmill_loader::{LoadOptions, Target};
use sawmill_source::Kind;

use crate::database::{run, small, with_control};
use crate::fixture::people;
use crate::remembered::{Directory, ROWS};

#[test]
fn a_list_on_record_is_not_complete_while_an_append_of_a_changed_file_is_interrupted() {
    for by_load in [false, true] {
        let files = Directory::new();
        files.file("b", 1);
        if by_load {
            files.execute("DROP TABLE t");
            run(&files.source(), &files.database.target("t"), &small()).unwrap();
        } else {
            files.append().unwrap();
        }
        let path = files.path().join("a.parquet");
        let kept = std::fs::read(&path).unwrap();
        people(&path, 5_000_000, 2 * ROWS, 1000);
        files.begin(&files.source());
        assert!(files.database.count("t") > 2 * ROWS as i64);
        std::fs::write(&path, kept).unwrap();
        // Mode auto repeats no load that made the table.
        let adds = |options: &LoadOptions| {
            let target = files.database.target("t");
            with_control(|control| target.adds_files(&files.source(), options, control)).unwrap()
        };
        for options in [small(), LoadOptions { append_changed: true, ..small() }] {
            assert_eq!(adds(&options), by_load);
            let error = run(&files.source(), &files.target(), &options).unwrap_err();
            assert_eq!(error.kind(), Kind::Changed, "{error}");
            assert!(error.what().contains("has changed since the load began"), "{error}");
        }
    }
}
