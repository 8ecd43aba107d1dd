//! What holds for every file whose footer is written again. The fuzz target `rewrite` has this module, too.

use sawmill_footer::{Footer, Options};

use crate::{Repaired, repaired, scrubbed, write_file};

/// What could be done with a file.
pub struct Kept {
    /// Its footer could be decoded and scrubbed.
    pub is_scrubbed: bool,
    /// Fields of its footer were repaired.
    pub is_repaired: bool,
}

/// Scrubs and repairs the footer of any file. A scrubbed footer has as many parts; a repaired one needs no repair, and one
/// without repairs stays.
pub fn keep(file: &[u8]) -> Kept {
    let footer = Footer::from_file_bytes(file, &Options::new()).ok();
    let scrubbed = footer.as_ref().and_then(|footer| Some((footer, scrubbed(footer).ok()?)));
    if let Some((footer, scrubbed)) = &scrubbed {
        let scrubbed = Footer::decode(scrubbed.clone(), &Options::new()).unwrap();
        assert_eq!(scrubbed.num_columns(), footer.num_columns());
        assert_eq!(scrubbed.num_row_groups(), footer.num_row_groups());
        assert_eq!(scrubbed.num_rows(), footer.num_rows());
    }
    let mut kept = Kept { is_scrubbed: scrubbed.is_some(), is_repaired: false };
    let Ok(Repaired { footer, start, repairs, left, .. }) = repaired(file, "it", 1 << 20) else {
        return kept;
    };
    kept.is_repaired = !repairs.is_empty();
    let mut mended = file.get(..start as usize).unwrap().to_vec();
    write_file(&footer, false, &mut mended).unwrap();
    assert!(kept.is_repaired || mended == file, "nothing was repaired");
    let again = repaired(mended.as_slice(), "it", u64::MAX).unwrap();
    assert!(again.repairs.is_empty(), "{repairs:?}, {:?}", again.repairs);
    assert_eq!((again.footer, again.left), (footer, left));
    kept
}
