//! The word lists of the crate `fake`, by locale, and the forms that they are put together in.

use fake::locales::{
    AR_SA, CY_GB, DE_DE, Data, EN, FA_IR, FR_FR, IT_IT, JA_JP, NL_NL, PT_BR, PT_PT, TR_TR, ZH_CN, ZH_TW,
};

use super::Part;

type List = &'static [&'static str];

/// The lists and forms of a locale. Those that `fake` has for English alone are empty for others.
pub(super) struct Lists {
    first_name: List,
    last_name: List,
    name_form: &'static str,
    street_suffix: List,
    street_form: &'static str,
    building: List,
    city_prefix: List,
    city_suffix: List,
    city_form: &'static str,
    postcode: List,
    state: List,
    country: List,
    company_suffix: List,
    company_forms: List,
    job: [List; 3],
    job_form: &'static str,
    phone: List,
    phrase: [List; 3],
    phrase_form: &'static str,
}

/// The name of a locale, and its lists.
pub(super) type Locale = (&'static str, fn() -> Lists);

pub(super) const LOCALES: &[Locale] = &[
    ("en_US", lists::<EN>),
    ("ar_SA", lists::<AR_SA>),
    ("cy_GB", lists::<CY_GB>),
    ("de_DE", lists::<DE_DE>),
    ("fa_IR", lists::<FA_IR>),
    ("fr_FR", lists::<FR_FR>),
    ("it_IT", lists::<IT_IT>),
    ("ja_JP", lists::<JA_JP>),
    ("nl_NL", lists::<NL_NL>),
    ("pt_BR", lists::<PT_BR>),
    ("pt_PT", lists::<PT_PT>),
    ("tr_TR", lists::<TR_TR>),
    ("zh_CN", lists::<ZH_CN>),
    ("zh_TW", lists::<ZH_TW>),
];

fn lists<L: Data>() -> Lists {
    // A locale without a list inherits the English one.
    let is_english =
        std::ptr::eq(L::NAME_FIRST_NAME, EN::NAME_FIRST_NAME) || L::NAME_FIRST_NAME == EN::NAME_FIRST_NAME;
    let own = |list: List, english: List| if is_english || list != english { list } else { &[] };
    Lists {
        first_name: L::NAME_FIRST_NAME,
        last_name: L::NAME_LAST_NAME,
        name_form: L::NAME_TPL,
        street_suffix: own(L::ADDRESS_STREET_SUFFIX, EN::ADDRESS_STREET_SUFFIX),
        street_form: street_form::<L>(),
        building: match L::ADDRESS_BUILDING_NUMBER_FORMATS {
            formats if is_english || formats != EN::ADDRESS_BUILDING_NUMBER_FORMATS => formats,
            _ => &["#", "##", "###"],
        },
        city_prefix: own(L::ADDRESS_CITY_PREFIX, EN::ADDRESS_CITY_PREFIX),
        city_suffix: own(L::ADDRESS_CITY_SUFFIX, EN::ADDRESS_CITY_SUFFIX),
        city_form: L::ADDRESS_CITY_TPL,
        postcode: postcodes::<L>(is_english),
        state: own(L::ADDRESS_STATE, EN::ADDRESS_STATE),
        country: own(L::ADDRESS_COUNTRY, EN::ADDRESS_COUNTRY),
        company_suffix: own(L::COMPANY_SUFFIX, EN::COMPANY_SUFFIX),
        company_forms: match L::COMPANY_NAME_TPLS {
            forms if is_english || forms != EN::COMPANY_NAME_TPLS => forms,
            // The other form has an English "and".
            _ => &["{Name_1} {Suffix}"],
        },
        job: [
            own(L::JOB_SENIORITY, EN::JOB_SENIORITY),
            own(L::JOB_FIELD, EN::JOB_FIELD),
            own(L::JOB_POSITION, EN::JOB_POSITION),
        ],
        job_form: L::JOB_TITLE_TPL,
        phone: own(L::PHONE_NUMBER_FORMATS, EN::PHONE_NUMBER_FORMATS),
        phrase: [
            own(L::COMPANY_BUZZWORD_HEAD, EN::COMPANY_BUZZWORD_HEAD),
            own(L::COMPANY_BUZZWORD_MIDDLE, EN::COMPANY_BUZZWORD_MIDDLE),
            own(L::COMPANY_BUZZWORD_TAIL, EN::COMPANY_BUZZWORD_TAIL),
        ],
        phrase_form: L::COMPANY_CATCH_PHASE_TPL,
    }
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
fn postcodes<L: Data>(is_english: bool) -> List {
    match (L::ADDRESS_POSTCODE_FORMATS, L::ADDRESS_ZIP_FORMATS) {
        (own, _) if is_english || own != EN::ADDRESS_POSTCODE_FORMATS => own,
        (_, own) if own != EN::ADDRESS_ZIP_FORMATS => own,
        _ => &[],
    }
}

/// The forms of `name`; `None` if the locale lacks a list for it.
pub(super) fn forms(name: &str, lists: Lists) -> Option<Vec<Vec<Part>>> {
    let names = [("FirstName", lists.first_name), ("LastName", lists.last_name)];
    let made = match name {
        "first_name" => vec![vec![Part::Word(different(lists.first_name)?)]],
        "last_name" => vec![vec![Part::Word(different(lists.last_name)?)]],
        "full_name" => vec![form(lists.name_form, &names)?],
        "street" => {
            let parts = [("StreetName", lists.last_name), ("StreetSuffix", lists.street_suffix)];
            let street = form(lists.street_form, &parts)?;
            // Where the kind of street comes first, so does the name of the house's number.
            lists
                .building
                .iter()
                .map(|building| {
                    let number = [Part::Literal(" "), Part::Digits(nonzero(building))];
                    street.iter().cloned().chain(number).collect()
                })
                .collect()
        }
        "city" => {
            let parts = [
                ("CityName", lists.last_name),
                ("CityPrefix", lists.city_prefix),
                ("CitySuffix", lists.city_suffix),
            ];
            vec![form(lists.city_form, &parts)?]
        }
        "postcode" => digits(lists.postcode),
        "phone" => digits(lists.phone),
        "state" => vec![vec![Part::Word(different(lists.state)?)]],
        "country" => vec![vec![Part::Word(different(lists.country)?)]],
        "company" => {
            let parts =
                [("Name_1", lists.last_name), ("Name_2", lists.last_name), ("Suffix", lists.company_suffix)];
            lists.company_forms.iter().map(|text| form(text, &parts)).collect::<Option<_>>()?
        }
        "job" => {
            let [seniority, field, position] = lists.job;
            vec![form(lists.job_form, &[("Seniority", seniority), ("Field", field), ("Position", position)])?]
        }
        "phrase" => {
            let [head, middle, tail] = lists.phrase;
            vec![form(lists.phrase_form, &[("Head", head), ("Middle", middle), ("Tail", tail)])?]
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
