//! Files without data: a footer alone, as it is or scrubbed, for a report that may be sent.

use std::io::{self, Write};

use sawmill_footer::Footer;

use crate::error::Error;
use crate::rewrite::{rewrite, scrub::Scrub};

/// The magic bytes at both ends of a file.
const MAGIC: &[u8; 4] = b"PAR1";

/// The footer without names, bounds and texts, but with the same row groups, column chunks, types, sizes, encodings
/// and counts. A signature after it is left out.
///
/// Names become `c1`, `c2`, ...; texts and other bytes become as many `x`; the bounds of a chunk become the
/// smallest ones of their lengths in the same order. `created_by` stays, and of keys the ones that programs write.
///
/// Costs a walk over the footer and memory for another one.
///
/// # Errors
///
/// The values nest too deeply.
pub fn scrubbed(footer: &Footer) -> Result<Vec<u8>, Error> {
    rewrite(footer.bytes(), &mut Scrub::new(footer))
}

/// Writes the end of a file, after its data: the footer, its length and the magic bytes. A file without data also gets
/// the first magic bytes, in front.
///
/// # Errors
///
/// Writing failed, or the footer has 4 GiB or more.
pub fn write_file(footer: &[u8], is_alone: bool, out: &mut dyn Write) -> io::Result<()> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a footer has less than 4 GiB");
    let len = u32::try_from(footer.len()).map_err(too_long)?;
    if is_alone {
        out.write_all(MAGIC)?;
    }
    out.write_all(footer)?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(MAGIC)
}
