//! Files that hold only a footer and no data, as `sawmill footer extract` writes them.

use crate::error::{Error, Result};
use crate::footer::Footer;

/// The bytes around the footer in these files: the magic bytes at both ends, and the footer's length.
const AROUND: u64 = 12;

impl Footer {
    /// Whether the file holds only a footer, although its chunks claim data in this file. Only encrypted chunks may be
    /// unreadable.
    pub fn has_no_data(&self) -> bool {
        if self.file_len() != Some(self.footer_len() as u64 + AROUND) {
            return false;
        }
        let mut claimed = 0;
        for chunk in self.row_groups().flat_map(|group| group.columns()) {
            let elsewhere =
                chunk.locations().is_ok_and(|at| at.file_path.is_some_and(|path| !path.is_empty()));
            // These chunks have their own error.
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
    /// The file holds only a footer, without encrypted columns.
    pub fn check_has_data(&self, wanted: &str) -> Result<()> {
        // Encrypted chunks have their own error.
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
