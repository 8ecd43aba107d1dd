//! The advice for the name of a column that does not exist.

/// Up to this many columns are all listed; of more, only those with the most similar names.
const LISTED: usize = 20;
const NEAREST: usize = 5;

/// Returns `the columns are a, b, ...`; of many columns, those whose names are most similar to `wanted`.
pub fn known_columns<'a>(wanted: &str, columns: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = columns.collect();
    if names.len() <= LISTED {
        return format!("the columns are {}", names.join(", "));
    }
    let wanted = wanted.to_lowercase();
    let unlike = |name: &&str| -> f64 { -strsim::jaro_winkler(&wanted, &name.to_lowercase()) };
    names.sort_by(|a, b| unlike(a).total_cmp(&unlike(b)));
    let count = names.len();
    names.truncate(NEAREST);
    format!("the nearest of the {count} columns are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::known_columns;

    #[test]
    fn few_columns_are_all_listed_and_of_many_the_most_similar() {
        assert_eq!(known_columns("c", ["a", "b"].into_iter()), "the columns are a, b");
        let names: Vec<String> = (0..1200).map(|column| format!("price_{column}")).collect();
        let advice = known_columns("Price_77", names.iter().map(String::as_str));
        assert!(advice.starts_with("the nearest of the 1200 columns are price_77, "), "{advice}");
        assert_eq!(advice.split(", ").count(), 5);
    }
}
