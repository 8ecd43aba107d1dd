//! The captured output of another program.

/// The output of a program on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The last 64 KiB.
    pub end: Vec<u8>,
    /// The number of bytes written, kept or not.
    pub bytes: u64,
}

impl CapturedOutput {
    /// The kept bytes as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.end).into_owned()
    }

    /// The last lines as text, at most `most`.
    pub fn last_lines(&self, most: usize) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines.get(lines.len().saturating_sub(most)..).unwrap_or_default().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_leave_out_blank_ones() {
        let output = CapturedOutput { end: b"a\nb\n\nc\n".to_vec(), bytes: 7 };
        assert_eq!(output.last_lines(2), "b\nc");
    }
}
