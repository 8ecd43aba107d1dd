//! Broken bytes cause no panic, no endless work, and errors that name an offset within the bytes.

use proptest::prelude::*;
use sawmill_footer::{Footer, Options, Root, dump};

use crate::samples;

/// Decodes the bytes and, if that works, requests everything.
pub fn exercise(bytes: &[u8]) -> bool {
    let dumped = dump(bytes, Root::FileMetaData, |line| line.value.to_string().len() < usize::MAX);
    if let Err(error) = &dumped {
        assert!(error.offset().is_some_and(|offset| offset <= bytes.len() as u64));
    }
    let footer = match Footer::decode(bytes, &Options::new()) {
        Ok(footer) => footer,
        Err(error) => {
            let offset = error.offset().unwrap_or_else(|| panic!("{error}"));
            assert!(offset <= bytes.len() as u64, "{error}");
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    assert!(footer.heap_bytes() <= 64 * bytes.len() + 4096, "{} of {}", footer.heap_bytes(), bytes.len());
    let _ = (footer.version(), footer.num_rows(), footer.created_by(), footer.column_orders());
    let _ = (footer.key_value_metadata().count(), footer.encryption_algorithm().is_ok());
    let _ = (footer.footer_signing_key_metadata(), footer.trailing_bytes());
    let _ = format!("{:?}", footer.schema());
    for leaf in footer.schema().leaves() {
        assert!(footer.schema().find(&leaf.path()).is_some());
    }
    for group in footer.row_groups() {
        let _ = format!("{group:?} {:?}", group.sorting_columns());
        for chunk in group.columns() {
            let _ = (format!("{chunk:?}"), chunk.readable().is_ok(), chunk.byte_range());
            match chunk.details() {
                Ok(details) => assert_eq!(chunk.statistics().unwrap(), details.statistics),
                Err(error) => {
                    assert!(error.path().starts_with("row_groups["), "{error}");
                    let _ = (chunk.statistics().is_ok(), chunk.locations().is_ok());
                }
            }
            let _ = (chunk.offset_index_range().is_ok(), chunk.column_index_range().is_ok());
        }
    }
    sawmill_inspect::check(&footer, |finding| assert!(!finding.to_string().is_empty()));
    true
}

fn small_files() -> Vec<Vec<u8>> {
    let batches = [samples::flat(40), samples::nested(40)];
    let settings = samples::settings();
    let files = batches.iter().flat_map(|batch| {
        settings
            .iter()
            .map(|(_, properties)| samples::metadata(&samples::write(batch, properties.clone())).to_vec())
    });
    files.collect()
}

#[test]
fn a_footer_cut_off_anywhere_is_an_error() {
    for bytes in small_files() {
        assert!(exercise(&bytes));
        for end in 0..bytes.len() {
            assert!(!exercise(&bytes[..end]), "cut off at {end} of {}", bytes.len());
        }
    }
}

#[test]
fn every_byte_may_be_any_other() {
    for bytes in small_files().into_iter().take(6).step_by(5) {
        for at in (0..bytes.len()).step_by(3) {
            for change in [0x01, 0x0f, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                exercise(&bytes);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_footers_do_no_harm(
        which in 0_usize..10,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..12),
    ) {
        thread_local!(static FILES: Vec<Vec<u8>> = small_files());
        let mut bytes = FILES.with(|files| files[which].clone());
        for (at, value, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = value,
                1 => bytes.insert(at, value),
                2 => { bytes.remove(at); }
                _ => {
                    let end = (at + usize::from(value)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        exercise(&bytes);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }
}
