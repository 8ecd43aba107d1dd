//! Tables of a swept parameter for the terminal: one line for each of its values, with the speed-up over the
//! first; one table for each combination of the other parameters.

use crate::measure::compare::comparison::{Comparison, Method};
use crate::measure::results::{Case, SideResult};
use crate::reports::table::{Align, Table};
use crate::text::byte_sizes::format_byte_rate;
use crate::text::counts::format_rate;
use crate::text::durations::format_duration;
use crate::trace::seconds;

/// Tables of our side's median times over the values of one parameter, each titled with its case and the
/// other parameters, in run order. Cases without the parameter are omitted.
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use sawmill_profile::{Case, Run, SideResult, sweep_tables};
/// let case = |degree: &str, seconds| {
///     let run = Run { wall: Duration::from_secs(seconds), ..Run::default() };
///     let parameters = BTreeMap::from([("degree".to_owned(), degree.to_owned())]);
///     Case::new("load", parameters, vec![SideResult::new("sawmill", 0, vec![run])]).unwrap()
/// };
/// let tables = sweep_tables(&[case("1", 12), case("4", 4)], "degree");
/// assert_eq!(tables[0].0, "load");
/// assert_eq!(tables[0].1.to_string(), "\
/// degree    time  speed-up  rate  against the first
/// ------  ------  --------  ----  -----------------
///      1  12.0 s    1.00 x
///      4  4.00 s    3.00 x        too few runs
/// ");
/// ```
pub fn sweep_tables(cases: &[Case], parameter: &str) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Vec<(&str, &Case)>)> = Vec::new();
    for case in cases {
        let Some(value) = case.parameters.get(parameter) else { continue };
        let mut others = case.parameters.clone();
        others.remove(parameter);
        let title = Case { name: case.name.clone(), parameters: others, ..Case::default() }.title();
        match tables.iter_mut().find(|(have, _)| *have == title) {
            Some((_, lines)) => lines.push((value, case)),
            None => tables.push((title, vec![(value, case)])),
        }
    }
    tables.into_iter().map(|(title, lines)| (title, table(parameter, &lines))).collect()
}

fn table(parameter: &str, lines: &[(&str, &Case)]) -> Table {
    let right = Align::Right;
    let mut table = Table::new([
        (parameter, right),
        ("time", right),
        ("speed-up", right),
        ("rate", right),
        ("against the first", Align::Left),
    ]);
    let median = |case: &Case| Some(case.sides.first()?.wall.as_ref()?.median);
    let first = lines.first().and_then(|(_, case)| median(case));
    for (place, (value, case)) in lines.iter().enumerate() {
        let side = case.sides.first();
        let time = median(case);
        let rate = side.and_then(|side| side.rows_per_second()).map(|rate| format_rate(rate, "rows"));
        let rate = rate.or_else(|| side?.bytes_per_second().map(format_byte_rate));
        let speed = first.zip(time).filter(|(_, time)| *time > 0.0).map(|(first, time)| first / time);
        table.row([
            (*value).to_owned(),
            time.map(|time| format_duration(seconds::from_number(time))).unwrap_or_default(),
            speed.map(|speed| format!("{speed:.2} x")).unwrap_or_default(),
            rate.unwrap_or_default(),
            lines.first().filter(|_| place > 0).map(|(_, first)| verdict(case, first)).unwrap_or_default(),
        ]);
    }
    table
}

/// Whether the runs show a difference between two cases.
fn verdict(case: &Case, first: &Case) -> String {
    let walls = |case: &Case| case.sides.first().map(SideResult::walls).unwrap_or_default();
    match Comparison::independent(&walls(case), &walls(first)) {
        Ok(found) if found.method != Method::TooFewRuns => found.verdict.to_string(),
        _ => "too few runs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::run::Run;

    #[test]
    fn every_combination_of_the_other_parameters_has_a_table() {
        let mut cases = Vec::new();
        for table in ["logged", "unlogged"] {
            for degree in ["1", "2"] {
                let parameters = [("table", table), ("degree", degree)];
                let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
                let side = SideResult::new("sawmill", 0, vec![Run::default()]);
                cases.push(Case::new("load", parameters.into(), vec![side]).unwrap());
            }
        }
        let titles: Vec<String> =
            sweep_tables(&cases, "degree").into_iter().map(|(title, _)| title).collect();
        assert_eq!(titles, ["load table=logged", "load table=unlogged"]);
        assert!(sweep_tables(&cases, "writers").is_empty());
    }
}
