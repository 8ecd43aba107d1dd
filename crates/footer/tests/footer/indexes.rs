//! An index finds every chunk, and knows its footer from others.

use proptest::prelude::*;
use sawmill_footer::{Footer, FooterIndex, Options, SyntheticColumns, SyntheticFooter};

#[test]
fn every_chunk_is_found_by_a_kept_index() {
    for kind in [SyntheticColumns::Float, SyntheticColumns::Mixed] {
        let bytes = SyntheticFooter { columns: 70, row_groups: 9, kind, seed: 2 }.bytes();
        let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
        let kept = footer.index().unwrap().to_bytes();
        let index = FooterIndex::from_bytes(kept).unwrap();
        index.fits(&bytes).unwrap();
        assert_eq!(index.schema().unwrap(), footer.schema());
        for group in footer.row_groups() {
            for chunk in group.columns() {
                let found = index.chunk(&bytes, group.index(), chunk.leaf()).unwrap().unwrap();
                assert_eq!(found.byte_range(), chunk.byte_range());
                assert_eq!(
                    (found.num_values(), found.uncompressed_size()),
                    (chunk.num_values(), chunk.uncompressed_size())
                );
                assert_eq!((found.physical_type(), found.codec()), (chunk.physical_type(), chunk.codec()));
                assert_eq!(found.encodings(), chunk.encodings());
                assert_eq!(found.details().unwrap(), chunk.details().unwrap());
            }
        }
        assert!(
            index.chunk(&bytes, 9, 0).unwrap().is_none() && index.chunk(&bytes, 0, 70).unwrap().is_none()
        );
    }
}

#[test]
fn an_index_knows_its_footer_and_part_of_a_footer_has_none() {
    let made =
        |seed| SyntheticFooter { columns: 70, row_groups: 9, kind: SyntheticColumns::Mixed, seed }.bytes();
    let footer = Footer::decode(made(2), &Options::new()).unwrap();
    let index = footer.index().unwrap();
    assert!(index.fits(&made(3)).unwrap_err().advice().contains("make the index anew"));
    assert!(index.chunk(&made(2)[1..], 0, 0).is_err());
    assert!(Footer::decode(made(2), &Options::new().columns([1])).unwrap().index().is_none());
    assert!(Footer::decode(made(2), &Options::new().row_groups(0..2)).unwrap().index().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_indexes_do_no_harm(at in any::<prop::sample::Index>(), value in any::<u8>(), end in any::<prop::sample::Index>()) {
        let bytes = SyntheticFooter { columns: 5, row_groups: 3, kind: SyntheticColumns::Text, seed: 2 }.bytes();
        let mut kept = Footer::decode(bytes.as_slice(), &Options::new()).unwrap().index().unwrap().to_bytes();
        let at = at.index(kept.len());
        kept[at] = value;
        if value % 2 == 0 {
            kept.truncate(1 + end.index(kept.len()));
        }
        if let Ok(index) = FooterIndex::from_bytes(kept) {
            for chunk in 0..15 {
                if let Ok(Some(found)) = index.chunk(&bytes, chunk / 5, chunk % 5) {
                    let _ = (found.byte_range(), found.details().is_ok());
                }
            }
        }
    }
}
