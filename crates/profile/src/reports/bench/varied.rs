//! Names of cases by the parameters that differ between them, as a reader would say it.

use std::collections::BTreeMap;

use crate::measure::results::Case;

/// Each parameter that has several values among the cases, with its values in order of appearance.
pub(super) fn varied<'a>(cases: &[&'a Case]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (parameter, value) in cases.iter().flat_map(|case| &case.parameters) {
        let seen = values.entry(parameter).or_default();
        if !seen.contains(&value.as_str()) {
            seen.push(value);
        }
    }
    values.into_iter().filter(|(_, seen)| seen.len() > 1).collect()
}

/// A value with its parameter: `logged`, `no key`, `batch rows 1024`.
pub(super) fn called(parameter: &str, value: &str) -> String {
    match (parameter, value) {
        ("table_kind", kind) => kind.to_owned(),
        ("keyed", "yes") => "with key".to_owned(),
        ("keyed", "no") => "no key".to_owned(),
        ("strategy", name) => name.to_owned(),
        (parameter, value) => format!("{} {value}", spoken(parameter)),
    }
}

/// The name of a parameter in words.
pub(super) fn spoken(parameter: &str) -> String {
    parameter.replace(['_', '-'], " ")
}

/// A case by its values of some parameters: `logged, with key`.
pub(super) fn named_by(case: &Case, parameters: &[&str]) -> String {
    // The kind of the table says most.
    let (first, rest): (Vec<&str>, Vec<&str>) =
        parameters.iter().partition(|parameter| **parameter == "table_kind");
    let parts = first.into_iter().chain(rest).filter_map(|parameter| {
        let value = case.parameters.get(parameter)?;
        Some(called(parameter, value))
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_named_by_what_was_varied_and_its_table_first() {
        let case = |keyed: &str, kind: &str| {
            let parameters = [("degree", "2"), ("keyed", keyed), ("table_kind", kind)];
            let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Case { parameters: parameters.into(), ..Case::default() }
        };
        let (one, other) = (case("yes", "logged"), case("no", "unlogged"));
        let names: Vec<&str> = varied(&[&one, &other]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["keyed", "table_kind"]);
        assert_eq!(named_by(&one, &names), "logged, with key");
        assert_eq!(named_by(&other, &["degree", "keyed"]), "degree 2, no key");
    }
}
