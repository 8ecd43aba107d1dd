//! How numbers and long values are written for people.

use std::time::Duration;

/// How a view writes numbers and long values for people.
///
/// The default writes exact digits and truncates long values. A program with its own style, such as `1.23
/// GB`, passes its functions, which keeps this crate independent of any library for numbers.
///
/// ```
/// use sawmill_inspect::TextStyle;
/// let exact = TextStyle::default();
/// let short = TextStyle::new(
///     |count| format!("{}k", count / 1000),
///     |bytes| format!("{} KiB", bytes >> 10),
///     |duration| format!("{duration:.0?}"),
/// );
/// # let _ = (exact, short);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    count: fn(u64) -> String,
    bytes: fn(u64) -> String,
    duration: fn(Duration) -> String,
    whole_values: bool,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self::new(|count| count.to_string(), |bytes| format!("{bytes} B"), |time| format!("{time:?}"))
    }
}

impl TextStyle {
    /// Writes counts, sizes in bytes and durations by these functions.
    pub fn new(count: fn(u64) -> String, bytes: fn(u64) -> String, duration: fn(Duration) -> String) -> Self {
        TextStyle { count, bytes, duration, whole_values: false }
    }

    /// Writes long values in full, and all rows of long tables.
    pub fn whole_values(self, whole_values: bool) -> Self {
        TextStyle { whole_values, ..self }
    }

    /// The limit for something long; none if long values are written in full.
    pub(crate) fn at_most(&self, limit: usize) -> usize {
        if self.whole_values { usize::MAX } else { limit }
    }

    pub(crate) fn count(&self, count: u64) -> String {
        (self.count)(count)
    }

    /// A count with its noun: `1 file`, `2 files`.
    pub(crate) fn counted(&self, count: u64, noun: &str) -> String {
        format!("{} {noun}{}", self.count(count), if count == 1 { "" } else { "s" })
    }

    pub(crate) fn bytes(&self, bytes: u64) -> String {
        (self.bytes)(bytes)
    }

    pub(crate) fn duration(&self, duration: Duration) -> String {
        (self.duration)(duration)
    }

    /// A count from a footer: at least 0 if the file is right.
    pub(crate) fn stated_count(&self, count: i64) -> String {
        u64::try_from(count).map_or_else(|_| count.to_string(), self.count)
    }

    pub(crate) fn stated_counted(&self, count: i64, noun: &str) -> String {
        u64::try_from(count).map_or_else(|_| format!("{count} {noun}s"), |count| self.counted(count, noun))
    }

    /// A size from a footer: at least 0 if the file is right.
    pub(crate) fn stated_bytes(&self, bytes: i64) -> String {
        u64::try_from(bytes).map_or_else(|_| format!("{bytes} B"), self.bytes)
    }
}

/// A bar of at most `width` cells for a share from 0 to 1, in eighths of a cell.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    } else if eighths == 0 && share > 0.0 {
        bar.push(EIGHTHS[1]);
    }
    bar
}

/// A part of a whole: `12.3%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
}

/// How many times `small` goes into `large`: `2.35`.
pub(crate) fn ratio(large: u64, small: u64) -> String {
    if small == 0 { "-".to_owned() } else { format!("{:.2}", large as f64 / small as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_shares() {
        assert_eq!([0.0, 0.001, 0.5, 1.0, 7.0].map(|share| bar(share, 4)), ["", "▏", "██", "████", "████"]);
        assert_eq!(bar(0.375, 4), "█▌");
    }
}
