//! Files that are a footer alone, without data: `sawmill footer extract` makes them.

use crate::error::Error;
use crate::footer::Footer;

/// The length of everything around such a footer: the magic bytes at both ends, and its length.
const AROUND: u64 = 12;

impl Footer {
    /// Whether the file is a footer alone, and its chunks, which can be read or are encrypted, are in no file.
    pub fn has_no_data(&self) -> bool {
        if self.file_len() != Some(self.footer_len() as u64 + AROUND) {
            return false;
        }
        let mut claimed = 0;
        for chunk in self.row_groups().flat_map(|group| group.columns()) {
            let elsewhere =
                chunk.locations().is_ok_and(|at| at.file_path.is_some_and(|path| !path.is_empty()));
            // Those have an error of their own.
            if elsewhere || !chunk.is_encrypted() && chunk.readable().is_err() {
                return false;
            }
            claimed += match chunk.has_metadata() {
                true => chunk.compressed_size().max(0),
                false => chunk.row_group().num_rows().max(0),
            };
        }
        claimed > 0
    }

    /// Makes sure that the file has `wanted`: values, or pages.
    ///
    /// # Errors
    ///
    /// It is a footer alone, without encrypted columns.
    pub fn check_has_data(&self, wanted: &str) -> Result<(), Error> {
        // Encrypted chunks have an error of their own.
        let mut chunks = self.row_groups().flat_map(|group| group.columns());
        if !self.has_no_data() || chunks.any(|chunk| chunk.is_encrypted()) {
            return Ok(());
        }
        let error = Error::new(format!("expected {wanted}, found a footer alone: the file has no data"))
            .with_advice("name the file that the footer was extracted from");
        Err(match self.file_name() {
            Some(name) => error.in_file(name),
            None => error,
        })
    }
}
