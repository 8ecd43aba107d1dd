//! Names and addresses of locales, and addresses that follow names.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use sawmill_generator::{Dataset, Error};

const PEOPLE: &str = r#"
name = "people"
fields = [
  { name = "who", type = "string", nulls = 0.2, values = { full_name = { locale = "de_DE" } } },
  { name = "mail", type = "string", nulls = 0, values = { email = { name = "who", domains = ["a.example", "b.example"] } } },
  { name = "native", type = "string", values = { full_name = { locale = "zh_CN" } } },
  { name = "native_mail", type = "string", values = { email = { name = "native" } } },
  { name = "postcode", type = "string", values = { postcode = { locale = "nl_NL" } } },
  { name = "city", type = "string", values = { city = { locale = "it_IT" } } },
]
"#;

fn rows(spec: &str, n: usize) -> RecordBatch {
    let dataset = Dataset::from_toml(spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    dataset.batches(0..n as u64, 7, n).next().unwrap().unwrap()
}

fn refused(field: &str) -> Error {
    let spec = format!("name = \"d\"\nfields = [\n{field}\n]\n");
    Dataset::from_toml(&spec).expect_err("the spec is wrong")
}

#[test]
fn an_address_follows_the_name_of_its_row() {
    let batch = rows(PEOPLE, 20_000);
    let column = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
    let (who, mail) = (column("who"), column("mail"));
    let (mut seen, mut at_first) = (0, 0);
    for row in 0..batch.num_rows() {
        assert_eq!(who.is_null(row), mail.is_null(row));
        if who.is_null(row) {
            continue;
        }
        let (name, address) = (who.value(row), mail.value(row));
        if name.contains(|c: char| !c.is_ascii() && !"äöüßÄÖÜ".contains(c)) {
            continue;
        }
        let (before, domain) = address.split_once('@').unwrap();
        let plain = |c: char| match c {
            'ä' => "a".to_owned(),
            'ö' => "o".to_owned(),
            'ü' => "u".to_owned(),
            'ß' => "ss".to_owned(),
            ' ' | '-' => ".".to_owned(),
            c => c.to_string(),
        };
        let expected: String = name.to_lowercase().chars().map(plain).collect();
        assert_eq!(before.trim_end_matches(|c: char| c.is_ascii_digit()), expected, "{name}");
        seen += 1;
        at_first += usize::from(domain == "a.example");
    }
    assert!(seen > 14_000 && (at_first as f64 / seen as f64 - 0.5).abs() < 0.02, "{at_first} of {seen}");
    let native = column("native_mail");
    assert!(native.iter().flatten().all(|address| address.is_ascii() && !address.starts_with('@')));
    let different: std::collections::HashSet<&str> = who.iter().flatten().collect();
    assert!(different.len() > 8_000, "{} names", different.len());
}

#[test]
fn values_have_the_form_of_their_locale() {
    let batch = rows(PEOPLE, 1000);
    for code in batch.column_by_name("postcode").unwrap().as_string::<i32>().iter().flatten() {
        let (digits, letters) = code.split_once(' ').unwrap();
        assert!(digits.len() == 4 && digits.bytes().all(|c| c.is_ascii_digit()), "{code}");
        assert!(letters.len() == 2 && letters.bytes().all(|c| c.is_ascii_uppercase()), "{code}");
    }
}

#[test]
fn what_a_locale_lacks_is_an_error_that_says_which_locales_have_it() {
    let error =
        refused("{ name = \"x\", type = \"string\", values = { job = { locale = \"ar_SA\" } } }").to_string();
    assert!(
        error.contains("no job of the locale ar_SA") && !error.contains("de_DE") && error.contains("fa_IR"),
        "{error}"
    );
    let error =
        refused("{ name = \"x\", type = \"string\", values = { city = { locale = \"xx\" } } }").to_string();
    assert!(error.contains("unknown locale \"xx\"") && error.contains("tr_TR"), "{error}");
    let error = refused("{ name = \"x\", type = \"int32\", values = \"city\" }").to_string();
    assert!(error.contains("city draws strings, not int32"), "{error}");
    let error = refused("{ name = \"x\", type = \"string\", values = { email = { name = \"nobody\" } } }")
        .to_string();
    assert!(error.contains("nobody is not an earlier field"), "{error}");
    let error =
        refused("{ name = \"x\", type = \"string\", values = { email = { name = \"y\", domains = [] } } }")
            .to_string();
    assert!(error.contains("domains"), "{error}");
}
