//! The word lists of the crate `fake`, by locale, and the forms that they are put together in.

use fake::locales::{
    AR_SA, CY_GB, DE_DE, Data, EN, FA_IR, FR_FR, IT_IT, JA_JP, NL_NL, PT_BR, PT_PT, TR_TR, ZH_CN, ZH_TW,
};

use super::Part;

type List = &'static [&'static str];

/// The name of a locale, and its forms by the name of a kind of values: `None` if it lacks a list for them.
pub(super) type Locale = (&'static str, fn(&str) -> Option<Vec<Vec<Part>>>);

pub(super) const LOCALES: &[Locale] = &[
    ("en_US", forms::<EN>),
    ("ar_SA", forms::<AR_SA>),
    ("cy_GB", forms::<CY_GB>),
    ("de_DE", forms::<DE_DE>),
    ("fa_IR", forms::<FA_IR>),
    ("fr_FR", forms::<FR_FR>),
    ("it_IT", forms::<IT_IT>),
    ("ja_JP", forms::<JA_JP>),
    ("nl_NL", forms::<NL_NL>),
    ("pt_BR", forms::<PT_BR>),
    ("pt_PT", forms::<PT_PT>),
    ("tr_TR", forms::<TR_TR>),
    ("zh_CN", forms::<ZH_CN>),
    ("zh_TW", forms::<ZH_TW>),
];

fn is_english<L: Data>() -> bool {
    L::NAME_FIRST_NAME == EN::NAME_FIRST_NAME
}

/// A list of the locale itself: one without a list inherits the English one.
fn own<L: Data>(list: List, english: List) -> List {
    if is_english::<L>() || list != english { list } else { &[] }
}

/// Kinds of streets in small letters are the end of the name, as in "Schmidtgasse".
fn street_form<L: Data>() -> &'static str {
    let is_ending = |suffix: &&str| suffix.starts_with(char::is_lowercase);
    match (L::ADDRESS_STREET_TPL, L::ADDRESS_STREET_SUFFIX.iter().all(is_ending)) {
        ("{StreetName} {StreetSuffix}", true) => "{StreetName}{StreetSuffix}",
        (form, _) => form,
    }
}

/// Some locales have the form of their postal codes in one list, some in another.
fn postcodes<L: Data>() -> List {
    match (L::ADDRESS_POSTCODE_FORMATS, L::ADDRESS_ZIP_FORMATS) {
        (own, _) if is_english::<L>() || own != EN::ADDRESS_POSTCODE_FORMATS => own,
        (_, own) if own != EN::ADDRESS_ZIP_FORMATS => own,
        _ => &[],
    }
}

fn streets<L: Data>() -> Option<Vec<Vec<Part>>> {
    let suffixes = own::<L>(L::ADDRESS_STREET_SUFFIX, EN::ADDRESS_STREET_SUFFIX);
    let parts = [("StreetName", L::NAME_LAST_NAME), ("StreetSuffix", suffixes)];
    let street = form(street_form::<L>(), &parts)?;
    let buildings = match L::ADDRESS_BUILDING_NUMBER_FORMATS {
        formats if is_english::<L>() || formats != EN::ADDRESS_BUILDING_NUMBER_FORMATS => formats,
        _ => &["#", "##", "###"],
    };
    // Where the kind of street comes first, so does the name of the house's number.
    let numbered = |building: &&'static str| {
        let number = [Part::Literal(" "), Part::Digits(nonzero(building))];
        street.iter().cloned().chain(number).collect()
    };
    Some(buildings.iter().map(numbered).collect())
}

fn forms<L: Data>(name: &str) -> Option<Vec<Vec<Part>>> {
    let made = match name {
        "first_name" => vec![vec![Part::Word(different(L::NAME_FIRST_NAME)?)]],
        "last_name" => vec![vec![Part::Word(different(L::NAME_LAST_NAME)?)]],
        "full_name" => {
            let names = [("FirstName", L::NAME_FIRST_NAME), ("LastName", L::NAME_LAST_NAME)];
            vec![form(L::NAME_TPL, &names)?]
        }
        "street" => streets::<L>()?,
        "city" => {
            let parts = [
                ("CityName", L::NAME_LAST_NAME),
                ("CityPrefix", own::<L>(L::ADDRESS_CITY_PREFIX, EN::ADDRESS_CITY_PREFIX)),
                ("CitySuffix", own::<L>(L::ADDRESS_CITY_SUFFIX, EN::ADDRESS_CITY_SUFFIX)),
            ];
            vec![form(L::ADDRESS_CITY_TPL, &parts)?]
        }
        "postcode" => digits(postcodes::<L>()),
        "phone" => digits(own::<L>(L::PHONE_NUMBER_FORMATS, EN::PHONE_NUMBER_FORMATS)),
        "state" => vec![vec![Part::Word(different(own::<L>(L::ADDRESS_STATE, EN::ADDRESS_STATE))?)]],
        "country" => vec![vec![Part::Word(different(own::<L>(L::ADDRESS_COUNTRY, EN::ADDRESS_COUNTRY))?)]],
        "company" => {
            let (names, suffixes) = (L::NAME_LAST_NAME, own::<L>(L::COMPANY_SUFFIX, EN::COMPANY_SUFFIX));
            let parts = [("Name_1", names), ("Name_2", names), ("Suffix", suffixes)];
            let forms = match L::COMPANY_NAME_TPLS {
                forms if is_english::<L>() || forms != EN::COMPANY_NAME_TPLS => forms,
                // The other form has an English "and".
                _ => &["{Name_1} {Suffix}"],
            };
            forms.iter().map(|text| form(text, &parts)).collect::<Option<_>>()?
        }
        "job" => {
            let parts = [
                ("Seniority", own::<L>(L::JOB_SENIORITY, EN::JOB_SENIORITY)),
                ("Field", own::<L>(L::JOB_FIELD, EN::JOB_FIELD)),
                ("Position", own::<L>(L::JOB_POSITION, EN::JOB_POSITION)),
            ];
            vec![form(L::JOB_TITLE_TPL, &parts)?]
        }
        "phrase" => {
            let parts = [
                ("Head", own::<L>(L::COMPANY_BUZZWORD_HEAD, EN::COMPANY_BUZZWORD_HEAD)),
                ("Middle", own::<L>(L::COMPANY_BUZZWORD_MIDDLE, EN::COMPANY_BUZZWORD_MIDDLE)),
                ("Tail", own::<L>(L::COMPANY_BUZZWORD_TAIL, EN::COMPANY_BUZZWORD_TAIL)),
            ];
            vec![form(L::COMPANY_CATCH_PHASE_TPL, &parts)?]
        }
        _ => return None,
    };
    (!made.is_empty()).then_some(made)
}

fn digits(formats: List) -> Vec<Vec<Part>> {
    formats.iter().map(|format| vec![Part::Digits(format)]).collect()
}

/// A number of a house does not begin with 0.
fn nonzero(format: &'static str) -> &'static str {
    match format {
        "#####" => "^####",
        "####" => "^###",
        "###" => "^##",
        "##" => "^#",
        "#" => "^",
        "nº ###" => "nº ^##",
        "nº ##" => "nº ^#",
        "nº #" => "nº ^",
        other => other,
    }
}

/// The words of a list, each once, without surrounding spaces.
fn different(list: List) -> Option<Vec<&'static str>> {
    let mut words: Vec<&str> = list.iter().map(|word| word.trim()).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    words.dedup();
    (!words.is_empty()).then_some(words)
}

/// The parts of `"{FirstName} {LastName}"`; `None` if it names an empty list.
fn form(text: &'static str, lists: &[(&str, List)]) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        if !before.is_empty() {
            parts.push(Part::Literal(before));
        }
        let (_, list) = lists.iter().find(|(known, _)| *known == name)?;
        parts.push(Part::Word(different(list)?));
        rest = behind;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest));
    }
    Some(parts)
}
