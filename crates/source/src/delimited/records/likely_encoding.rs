//! The encoding that the letters of a text tell.

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, IBM866, ISO_8859_5, KOI8_R, SHIFT_JIS, UTF_16BE, UTF_16LE,
    WINDOWS_1251, WINDOWS_1252, WINDOWS_1253,
};

const CHINESE: &str = "Chinese characters";

/// The text of UTF-8; `None` for other bytes. The last character may go on behind the start of a text.
pub(super) fn of_utf8(start: &[u8], is_all: bool) -> Option<&str> {
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_none() && !is_all => {
            std::str::from_utf8(&start[..error.valid_up_to()]).ok()
        }
        text => text.ok(),
    }
}

/// Returns the text of bytes, and the encoding if they are not UTF-8.
pub(super) fn decoded(start: &[u8], is_all: bool) -> (String, Option<(&'static Encoding, String)>) {
    let zeros =
        |odd: usize| start.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count() * 4 > start.len();
    let wide = [(UTF_16LE, 1), (UTF_16BE, 0)].into_iter().find(|(_, odd)| zeros(*odd));
    if let Some((encoding, _)) = wide {
        let (text, _) = encoding.decode_without_bom_handling(start);
        return (text.into_owned(), Some((encoding, "characters of two bytes".to_owned())));
    }
    if let Some(text) = of_utf8(start, is_all) {
        return (text.trim_start_matches('\u{feff}').to_owned(), None);
    }
    let kana = |c: char| matches!(c, '\u{3040}'..='\u{30ff}');
    let hangul = |c: char| matches!(c, '\u{ac00}'..='\u{d7a3}');
    let han =
        |c: char| matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff60}');
    let cyrillic = |c: char| matches!(c, '\u{400}'..='\u{45f}');
    let greek = |c: char| matches!(c, '\u{370}'..='\u{3ff}');
    let high = start.iter().filter(|byte| !byte.is_ascii()).count();
    /// An encoding, the characters of its script, their least share in percent, a name.
    type Script = (&'static Encoding, fn(char) -> bool, usize, &'static str);
    let scripts: [Script; 11] = [
        (SHIFT_JIS, kana, 20, "Japanese kana"),
        (EUC_JP, kana, 20, "Japanese kana"),
        (EUC_KR, hangul, 85, "Korean syllables"),
        (BIG5, han, 95, CHINESE),
        (GB18030, han, 90, CHINESE),
        (WINDOWS_1251, cyrillic, 90, "Cyrillic letters"),
        (KOI8_R, cyrillic, 90, "Cyrillic letters"),
        (IBM866, cyrillic, 90, "Cyrillic letters"),
        (WINDOWS_1253, greek, 90, "Greek letters"),
        (ISO_8859_5, cyrillic, 90, "Cyrillic letters"),
        (WINDOWS_1252, |_| true, 0, "Latin letters"),
    ];
    let read = |encoding: &'static Encoding| {
        let (text, _) = encoding.decode_without_bom_handling(start);
        // The start may end within a character.
        Some(text).filter(|text| text.matches('\u{fffd}').count() <= usize::from(!is_all))
    };
    let others = |text: &str| text.chars().filter(|c| !c.is_ascii() && *c != '\u{fffd}').collect::<Vec<_>>();
    let has = |text: &str, is_of_script: fn(char) -> bool, percent: usize| {
        let others = others(text);
        others.iter().filter(|c| is_of_script(**c)).count() * 100 >= others.len() * percent
    };
    for (encoding, is_of_script, percent, named) in scripts {
        let Some(text) = read(encoding).filter(|text| has(text, is_of_script, percent)) else { continue };
        // In GB 2312 both bytes of a character are high, in Big5 often one.
        let of_others = others(&text);
        if percent > 0 && (!is_of_words(&text) || encoding == BIG5 && high >= 2 * of_others.len()) {
            continue;
        }
        let example: String = of_others.iter().filter(|c| is_of_script(**c)).take(3).collect();
        let mut evidence = format!("{named} such as {example:?}");
        // Without kana, Japanese is as likely.
        for other in [SHIFT_JIS, EUC_JP].into_iter().filter(|_| named == CHINESE || encoding == EUC_KR) {
            if let Some(text) = read(other).filter(|text| has(text, han, 100)) {
                let example: String = others(&text).into_iter().take(3).collect();
                evidence += &format!("; it may also be {}, with {example:?}", other.name().to_lowercase());
            }
        }
        return (text.into_owned(), Some((encoding, evidence)));
    }
    (String::from_utf8_lossy(start).into_owned(), None)
}

/// Whether a text has words of another script than Latin: letters beside one another, and hardly a capital behind a small
/// letter. Accents in Latin text that is read in another encoding are alone, and letters of others have capitals anywhere.
fn is_of_words(text: &str) -> bool {
    let pairs = || text.chars().zip(text.chars().skip(1)).filter(|(_, next)| !next.is_ascii());
    let beside = pairs().filter(|(before, _)| !before.is_ascii()).count();
    let mixed = pairs().filter(|(before, next)| before.is_lowercase() && next.is_uppercase()).count();
    beside * 5 >= pairs().count() * 2 && mixed * 20 <= pairs().count()
}
