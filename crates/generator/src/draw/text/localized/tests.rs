//! Names and addresses of countries, and the ASCII that addresses of mail make of them.

use super::*;

#[test]
fn addresses_are_in_ascii_with_points_between_words() {
    for (name, expected) in [
        ("Jürgen Groß", "jurgen.gross"),
        ("Anne-Marie  O'Neil", "anne.marie.oneil"),
        ("王 芳", "wang.fang"),
        ("  ", ""),
        ("José María!", "jose.maria"),
    ] {
        let mut out = Vec::new();
        slug(name, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn every_kind_of_every_locale_has_values_in_its_form_or_is_refused() {
    for (locale, _) in lists::LOCALES {
        for name in kinds() {
            let Ok(forms) = forms(name, locale) else {
                assert!(!matches!(name, "first_name" | "last_name" | "full_name"), "{locale}: {name}");
                continue;
            };
            let values = Localized { forms, name };
            for draw in 0..200u64 {
                let mut out = Vec::new();
                values.write(draw.wrapping_mul(0x9E37_79B9_7F4A_7C15), &mut out);
                assert!(out.len() as u64 <= values.longest());
                let text = String::from_utf8(out).unwrap();
                assert!(!text.is_empty() && text.trim() == text, "{locale}: {name}: {text:?}");
                assert!(!text.contains(['{', '}', '#', '^', '$']), "{locale}: {name}: {text:?}");
            }
        }
    }
}
