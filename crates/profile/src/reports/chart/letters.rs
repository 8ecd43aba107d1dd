//! The width of text. The reader's font is unknown, so the widths are from a wide font (DejaVu Sans),
//! and text is wrapped rather than cut.

/// The width of a text in pixels, at a size of the font in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(letter).sum::<f64>() * size
}

/// The width of a letter as a share of the font's size.
fn letter(char: char) -> f64 {
    match char {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '/' | 'I' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 1.0,
        '=' | '+' | '<' | '>' | '~' => 0.84,
        'A'..='Z' => 0.74,
        char if char.is_ascii() => 0.64,
        // Scripts whose letters fill a square, and pictures.
        char if char >= '\u{1100}' => 1.05,
        _ => 0.7,
    }
}

/// Breaks a text into lines no wider than `room`, between words where that is possible.
pub(crate) fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive([' ', ',', '/', '_']) {
        if !line.is_empty() && width(line.trim_end(), size) + width(word.trim_end(), size) > room {
            lines.push(std::mem::take(&mut line));
        }
        for char in word.chars() {
            if !line.is_empty() && width(&line, size) + letter(char) * size > room && char != ' ' {
                lines.push(std::mem::take(&mut line));
            }
            line.push(char);
        }
    }
    lines.push(line);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_a_wrapped_text_is_there_and_no_line_is_too_wide() {
        let texts = [
            "batch_rows=1024 degree=4",
            "a",
            "",
            "名前がとても長いテーブル名前がとても長い",
            "oneverylongwordwithoutanyspaces",
        ];
        for text in texts {
            for room in [40.0, 90.0, 400.0] {
                let lines = wrapped(text, 12.0, room);
                assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
                assert!(lines.iter().all(|line| width(line, 12.0) <= room + 1e-9), "{lines:?} in {room}");
            }
        }
    }
}
