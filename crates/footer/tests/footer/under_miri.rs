//! Footers that are small enough for Miri: whole, cut off and mutated, on one thread and on two.
//!
//! ```sh
//! cargo +nightly miri test --package sawmill-footer --test footer -- under_miri    # with MIRIFLAGS=-Zmiri-disable-isolation
//! ```

use sawmill_footer::Options;

use crate::methods::assert_agreement;
use crate::synthetic::{SyntheticColumns, SyntheticFooter};

#[test]
fn methods_agree_on_small_footers_and_what_becomes_of_them() {
    for kind in [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed] {
        let mut bytes = SyntheticFooter { columns: 4, row_groups: 3, kind, seed: 7 }.bytes();
        assert_agreement(&bytes, &Options::new().threads(2));
        assert_agreement(&bytes, &Options::new().columns([1, 3]));
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 3) {
            assert_agreement(&bytes[..at], &Options::new());
            bytes[at] ^= 0x15;
            assert_agreement(&bytes, &Options::new());
            bytes[at] ^= 0x15;
        }
    }
}
