//! Points in time that follow the calendar.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use sawmill_generator::Dataset;

fn dataset(kind: &str, seasonal: &str) -> Result<Dataset, sawmill_generator::Error> {
    let spec = format!(
        "name = \"d\"\n[[fields]]\nname = \"at\"\ntype = \"{kind}\"\nvalues = {{ seasonal = {{ {seasonal} }} }}\n"
    );
    Dataset::from_toml(&spec)
}

/// The share of values for which `of` is each of 0 to `n - 1`.
fn shares(values: &[i64], n: usize, of: impl Fn(i64) -> usize) -> Vec<f64> {
    let mut shares = vec![0.0; n];
    for value in values {
        shares[of(*value)] += 1.0 / values.len() as f64;
    }
    shares
}

#[test]
fn hours_weekdays_months_and_years_have_their_weights() {
    // 2023 and 2024 both begin and end on whole weeks or nearly so; weights are relative.
    let spec = "from = 2023-01-02, to = 2024-12-29, hours = { 0 = 0, 12 = 5 }, weekdays = [1, 1, 1, 1, 1, 3, 0], \
                years = { 2024 = 2 }";
    let dataset = dataset("timestamp", spec).unwrap();
    let batch = dataset.batches(0..200_000, 3, 200_000).next().unwrap().unwrap();
    let values = batch.column(0).as_primitive::<TimestampMicrosecondType>().values();
    let hour = |at: i64| at / 3_600_000_000;
    let hours = shares(values, 24, |at| (hour(at) % 24) as usize);
    assert_eq!(hours[0], 0.0);
    for (i, share) in hours.iter().enumerate().skip(1) {
        let expected = if i == 12 { 5.0 } else { 1.0 } / 27.0;
        assert!((share - expected).abs() < 0.003, "hour {i}: {share}");
    }
    let weekdays = shares(values, 7, |at| (hour(at) / 24 + 3).rem_euclid(7) as usize);
    for (share, weight) in weekdays.iter().zip([1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 0.0]) {
        assert!((share - weight / 8.0).abs() < 0.003, "{weekdays:?}");
    }
    // 19,723 is 2024-01-01.
    let years = shares(values, 2, |at| usize::from(hour(at) / 24 >= 19_723));
    assert!((years[1] - 2.0 / 3.0).abs() < 0.006, "{years:?}");
    assert!(values.iter().all(|at| (19_359..=20_086).contains(&(hour(*at) / 24))));
    let within =
        values.iter().map(|at| (at % 3_600_000_000) as f64 / 3.6e9).sum::<f64>() / values.len() as f64;
    assert!((within - 0.5).abs() < 0.005, "{within}");
}

#[test]
fn dates_follow_months() {
    let dataset = dataset("date", "from = 2024-01-01, to = 2024-12-31, months = { 2 = 0, 12 = 10 }").unwrap();
    let batch = dataset.batches(0..50_000, 3, 50_000).next().unwrap().unwrap();
    let days: Vec<i64> = batch
        .column(0)
        .as_primitive::<Date32Type>()
        .values()
        .iter()
        .map(|day| i64::from(day - 19_723))
        .collect();
    assert!(days.iter().all(|day| (0..366).contains(day) && !(31..60).contains(day)));
    let december = days.iter().filter(|day| **day >= 335).count() as f64 / days.len() as f64;
    assert!((december - 310.0 / (366.0 - 29.0 - 31.0 + 310.0)).abs() < 0.01, "{december}");
}

#[test]
fn invalid_seasons_are_errors() {
    let wrong = |kind: &str, seasonal: &str| dataset(kind, seasonal).unwrap_err().to_string();
    let days = "from = 2024-01-01, to = 2024-01-31";
    assert!(wrong("int32", days).contains("seasonal draws dates and timestamps, not int32"));
    assert!(
        wrong("timestamp", "from = 2024-02-01, to = 2024-01-01").contains("days from the first to the last")
    );
    assert!(wrong("timestamp", "from = 3, to = 2024-01-01").contains("3 is not a date"));
    assert!(wrong("date", &format!("{days}, weekdays = [1, 2]")).contains("write 7 weights"));
    assert!(wrong("date", &format!("{days}, weekdays = {{ monday = 1 }}")).contains("mon, tue"));
    assert!(wrong("date", &format!("{days}, years = {{ 2023 = 1 }}")).contains("\"2023\" in `years`"));
    assert!(wrong("date", &format!("{days}, months = {{ 1 = 0 }}")).contains("sum to zero"));
    assert!(wrong("date", &format!("{days}, hours = {{ 1 = -1 }}")).contains("use a number of 0 or more"));
}
