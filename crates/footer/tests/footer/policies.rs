//! Requested parts of a footer are present; the others behave as if absent from the file.

use std::ops::ControlFlow;
use std::sync::Mutex;

use sawmill_footer::{ColumnSelector, Footer, Options, PageIndexPolicy, StatisticsPolicy, Verify};

use crate::samples;
use crate::synthetic::{SyntheticColumns, SyntheticFooter};

fn mixed() -> Vec<u8> {
    SyntheticFooter { columns: 40, row_groups: 9, kind: SyntheticColumns::Mixed, seed: 3 }.bytes()
}

fn sample() -> Vec<u8> {
    samples::write(&samples::flat(1000), samples::settings().remove(0).1)
}

#[test]
fn statistics_are_those_of_the_wanted_columns() {
    let bytes = mixed();
    let all = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
    let some = StatisticsPolicy::Columns(vec![ColumnSelector::Index(3), ColumnSelector::Index(17)]);
    let some = Footer::decode(bytes.as_slice(), &Options::new().statistics(some)).unwrap();
    let none = Options::new().statistics(StatisticsPolicy::None);
    let none = Footer::decode(bytes.as_slice(), &none).unwrap();
    for (group, column) in (0..9).flat_map(|group| (0..40).map(move |column| (group, column))) {
        let of =
            |footer: &Footer| footer.column_chunk(group, column).unwrap().statistics().unwrap().is_some();
        let details = |footer: &Footer| {
            footer.column_chunk(group, column).unwrap().details().unwrap().statistics.is_some()
        };
        assert!(of(&all) && details(&all));
        assert_eq!((of(&some), details(&some)), (column == 3 || column == 17, column == 3 || column == 17));
        assert!(!of(&none) && !details(&none));
    }
    let wrong = StatisticsPolicy::Columns(vec![ColumnSelector::Path("nowhere".to_string())]);
    let error = Footer::decode(bytes.as_slice(), &Options::new().statistics(wrong)).unwrap_err();
    assert!(error.what().contains("nowhere"), "{error}");
}

#[test]
fn page_indexes_are_read_with_the_footer_as_the_policy_says() {
    let file = sample();
    let read =
        |policy| Footer::read(file.as_slice(), "sample", &Options::new().page_indexes(policy)).unwrap();
    assert!(read(PageIndexPolicy::None).page_indexes().is_none());
    let all = read(PageIndexPolicy::All);
    let some = read(PageIndexPolicy::Chunks(vec![ColumnSelector::Index(1)], 0..1));
    let (all, some) = (all.page_indexes().unwrap(), some.page_indexes().unwrap());
    assert!(all.offset_index(0, 0).is_some() && all.column_index(0, 1).is_some());
    assert!(some.offset_index(0, 0).is_none() && some.column_index(0, 0).is_none());
    assert_eq!(some.offset_index(0, 1), all.offset_index(0, 1));
    assert_eq!(format!("{:?}", some.column_index(0, 1)), format!("{:?}", all.column_index(0, 1)));
}

#[test]
fn verification_covers_exactly_the_requested_level() {
    let mut file = sample();
    for level in [Verify::Decoded, Verify::Values] {
        assert!(Footer::from_file_bytes(&file, &Options::new().verify(level)).is_ok());
    }
    // The number of rows, 1000 as a zigzag varint, directly before the list of row groups.
    let at = file.windows(4).position(|found| found == [0x16, 0xd0, 0x0f, 0x19]).unwrap();
    file[at + 1] = 0xd2;
    for level in [Verify::Decoded, Verify::Values] {
        assert_eq!(Footer::from_file_bytes(&file, &Options::new().verify(level)).unwrap().num_rows(), 1001);
    }
}

#[test]
fn many_files_are_opened_at_once_and_each_has_its_own_result() {
    let directory = tempfile::tempdir().unwrap();
    let file = sample();
    let paths: Vec<_> = (0..50).map(|at| directory.path().join(format!("{at}.parquet"))).collect();
    for (at, path) in paths.iter().enumerate() {
        std::fs::write(path, if at == 7 { b"not one" } else { file.as_slice() }).unwrap();
    }
    for threads in [1, 4] {
        let results = Mutex::new(vec![None; paths.len()]);
        Footer::open_many(&paths, &Options::new().threads(threads), |at, footer| {
            results.lock().unwrap()[at] =
                Some(footer.map(|footer| footer.num_rows()).map_err(|error| error.to_string()));
            ControlFlow::Continue(())
        });
        for (at, result) in results.into_inner().unwrap().into_iter().enumerate() {
            match result.unwrap() {
                Ok(rows) => assert!(at != 7 && rows == 1000),
                Err(error) => assert!(at == 7 && error.contains("7.parquet"), "{error}"),
            }
        }
    }
    let opened = Mutex::new(0);
    Footer::open_many(&paths, &Options::new(), |_, _| {
        *opened.lock().unwrap() += 1;
        ControlFlow::Break(())
    });
    assert_eq!(opened.into_inner().unwrap(), 1);
}
