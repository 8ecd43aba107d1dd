//! The result file of a benchmark: a versioned JSON schema with everything that a reader needs to judge the
//! figures or to derive others from the raw samples. `docs/bench-results.md` describes every field.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::measure::commit::Commit;
use crate::measure::compare::comparison::Comparison;
use crate::measure::compare::statistics::Statistics;
use crate::measure::machine::{Filesystem, Machine};
use crate::measure::run::{Run, same_work};
use crate::reports::whole_file::write_whole;
use crate::trace::bottleneck::{Bottleneck, bottleneck};
use crate::trace::phase::PhaseReport;
use crate::watch::timeline::Timeline;

/// The value of [`ResultFile::format`].
pub(crate) const RESULT_FORMAT: &str = "sawmill-bench";
/// The version of the schema that this code writes. It reads older versions and rejects newer ones. New
/// fields need no new version: readers ignore unknown fields.
pub(crate) const RESULT_VERSION: u32 = 1;

/// The results of one invocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// `RESULT_FORMAT`.
    pub format: String,
    /// The version of the schema.
    pub version: u32,
    /// A name for this point in a series: a change, or the name of a baseline.
    pub label: String,
    /// When it started, in UTC (RFC 3339, whole seconds).
    pub started: String,
    /// The command line.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// The filesystems that held the data.
    #[serde(default)]
    pub filesystems: Vec<Filesystem>,
    /// Versions of the programs involved: our own, a server's, a peer's.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The commit of the measured code.
    pub commit: Option<Commit>,
    /// One entry for each measured combination of parameters.
    pub cases: Vec<Case>,
}

/// One combination of parameters, with all sides that ran it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The job: `gen`, `footer`, `load`, or the name of a peer's task.
    pub name: String,
    /// The swept parameters and their values.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The sides, ours first.
    pub sides: Vec<SideResult>,
    /// Our wall time compared with each other side's.
    #[serde(default)]
    pub comparisons: Vec<SideComparison>,
}

/// Our side compared with another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideComparison {
    /// The name of the other side, or of the saved baseline.
    pub with: String,
    /// The comparison of the wall times.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// What one side did in one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideResult {
    /// The side's name.
    pub name: String,
    /// Its command line, if it is another program.
    pub command: Option<String>,
    /// The number of warm-up runs.
    #[serde(default)]
    pub warmup: u32,
    /// All counted runs, in order.
    pub runs: Vec<Run>,
    /// Statistics of the wall times in seconds.
    pub wall: Option<Statistics>,
    /// Statistics of the CPU times, user and system, in seconds.
    pub cpu: Option<Statistics>,
    /// Statistics of the peak memory in bytes, if every run reports it.
    pub peak_memory: Option<Statistics>,
    /// The phases of the run with the median wall time.
    #[serde(default)]
    pub phases: Vec<PhaseReport>,
    /// What limited the speed of the longest phase.
    pub bottleneck: Option<Bottleneck>,
    /// The samples taken during that run.
    pub timeline: Option<Timeline>,
    /// CPU samples of a run as folded stacks.
    pub folded_stacks: Option<String>,
}

impl SideResult {
    /// A side built from its counted runs, with their statistics.
    pub fn new(name: &str, warmup: u32, runs: Vec<Run>) -> Self {
        let of = |figure: &dyn Fn(&Run) -> Option<f64>| {
            let figures: Option<Vec<f64>> = runs.iter().map(figure).collect();
            figures.and_then(|figures| Statistics::new(&figures))
        };
        Self {
            name: name.to_owned(),
            warmup,
            wall: of(&|run| Some(run.wall.as_secs_f64())),
            cpu: of(&|run| Some(run.cpu().as_secs_f64())),
            peak_memory: of(&|run| run.peak_memory.map(|bytes| bytes as f64)),
            runs,
            ..Self::default()
        }
    }

    /// Computes the statistics again. The error names the field that contradicts the runs, and how.
    fn recompute(&mut self) -> Result<(), (&'static str, String)> {
        let again = Self::new("", 0, self.runs.clone());
        for (field, stored, found) in [
            ("wall", &mut self.wall, again.wall),
            ("cpu", &mut self.cpu, again.cpu),
            ("peak_memory", &mut self.peak_memory, again.peak_memory),
        ] {
            let Some(stored) = stored else { continue };
            let runs = self.runs.len();
            let found = found.filter(|found| stored.agrees_with(found)).ok_or_else(|| {
                match stored.count == runs {
                    true => (field, "its figures are not those of its runs".to_owned()),
                    false => (field, format!("{} measurements in {runs} runs", stored.count)),
                }
            })?;
            *stored = found;
        }
        Ok(())
    }

    /// Sets the phases of the median run and determines the bottleneck of the longest one.
    pub fn with_phases(self, phases: Vec<PhaseReport>) -> Self {
        let longest = phases.iter().filter(|phase| !phase.threads.is_empty()).max_by_key(|phase| phase.wall);
        let bottleneck = longest.and_then(|phase| bottleneck(&phase.threads));
        Self { phases, bottleneck, ..self }
    }

    /// The runs' wall times in seconds.
    pub fn walls(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.wall.as_secs_f64()).collect()
    }

    /// Rows per second in the median run, if rows are counted.
    pub fn rows_per_second(&self) -> Option<f64> {
        self.per_second(|run| run.rows)
    }

    /// Bytes per second in the median run, if bytes are counted.
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.per_second(|run| run.bytes)
    }

    fn per_second(&self, figure: impl Fn(&Run) -> Option<u64>) -> Option<f64> {
        let amount = self.runs.first().and_then(figure)?;
        let median = self.wall.as_ref()?.median;
        (median > 0.0).then(|| amount as f64 / median)
    }

    /// The index of the run whose wall time is nearest to the median: the one whose phases and samples are
    /// worth keeping.
    pub fn median_run(&self) -> Option<usize> {
        let median = self.wall.as_ref()?.median;
        let distance = |run: &Run| (run.wall.as_secs_f64() - median).abs();
        let nearest = self.runs.iter().enumerate().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
        nearest.map(|(place, _)| place)
    }
}

impl Case {
    /// A case built from its sides, ours first; compares ours with each of the others.
    ///
    /// # Errors
    /// The sides cannot be paired; see [`Comparison::paired`].
    pub fn new(name: &str, parameters: BTreeMap<String, String>, sides: Vec<SideResult>) -> Result<Self> {
        let mut comparisons = Vec::new();
        if let Some((ours, others)) = sides.split_first() {
            for other in others {
                comparisons.push(SideComparison {
                    with: other.name.clone(),
                    comparison: Comparison::paired(&ours.walls(), &other.walls())?,
                });
            }
        }
        Ok(Self { name: name.to_owned(), parameters, sides, comparisons })
    }

    /// Compares our side with a saved result of the same name and parameters, if it exists.
    ///
    /// # Errors
    /// One of them has no runs.
    pub fn compare_with_baseline(&mut self, baseline: &ResultFile) -> Result<()> {
        let same = |case: &&Case| case.name == self.name && case.parameters == self.parameters;
        let theirs = baseline.cases.iter().find(same).and_then(|case| case.sides.first());
        if let (Some(ours), Some(theirs)) = (self.sides.first(), theirs) {
            let comparison = Comparison::independent(&ours.walls(), &theirs.walls())?;
            self.comparisons.push(SideComparison { with: baseline.label.clone(), comparison });
        }
        Ok(())
    }

    /// Computes statistics and comparisons again from the runs. Intervals of earlier versions, which were too narrow,
    /// become exact.
    ///
    /// # Errors
    /// The sides did different work, or the file's figures differ.
    fn recompute(&mut self) -> Result<(), String> {
        let title = self.title();
        let mut work = Vec::new();
        for side in &mut self.sides {
            for run in &side.runs {
                same_work(&mut work, &side.name, run).map_err(|error| format!("{title}: {error}"))?;
            }
            side.recompute().map_err(|(field, what)| format!("{field} of {title}, {}: {what}", side.name))?;
        }
        let Some((ours, others)) = self.sides.split_first() else { return Ok(()) };
        for SideComparison { with, comparison } in &mut self.comparisons {
            let theirs = others.iter().find(|side| side.name == *with).map(SideResult::walls);
            comparison
                .recompute(&ours.walls(), theirs.as_deref())
                .map_err(|what| format!("comparisons of {title} with {with}: {what}"))?;
        }
        Ok(())
    }

    /// The name and the parameters as one text: `load batch_rows=1024 degree=4`.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.parameters_text()).trim_end().to_owned()
    }

    /// The parameters as one text: `batch_rows=1024 degree=4`.
    pub fn parameters_text(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        parameters.collect::<Vec<_>>().join(" ")
    }
}

impl ResultFile {
    /// The name and accessor of the runs' size in bytes: what they stored if that was measured, otherwise the
    /// bytes they processed.
    pub(crate) fn size(&self) -> (&'static str, fn(&Run) -> Option<u64>) {
        let mut runs = self.cases.iter().flat_map(|case| &case.sides).flat_map(|side| &side.runs);
        match runs.any(|run| run.stored.is_some()) {
            true => ("stored", |run| run.stored),
            false => ("bytes", |run| run.bytes),
        }
    }

    /// A file without cases, for this machine and the current time.
    pub fn new(label: &str, command: &str) -> Self {
        Self {
            format: RESULT_FORMAT.to_owned(),
            version: RESULT_VERSION,
            label: label.to_owned(),
            started: crate::text::calendar::utc_text(SystemTime::now()),
            command: command.to_owned(),
            machine: Machine::this(),
            ..Self::default()
        }
    }

    /// The file as JSON text.
    ///
    /// # Errors
    /// It contains something that JSON cannot represent; the error is serde's.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .map_err(|error| Error::failed(format!("the results cannot be written as JSON: {error}"), "", ""))
    }

    /// Parses JSON text; `place` names it in errors.
    ///
    /// # Errors
    /// The text is not JSON, not a benchmark result, of a newer version, or contradicts itself.
    pub fn from_json(text: &str, place: &str) -> Result<Self> {
        /// The fields that all versions have.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let no_result = |error: serde_json::Error| {
            let advice =
                format!("pass a file that sawmill bench --json-file wrote (format {RESULT_FORMAT:?})");
            Error::failed(format!("this is not a benchmark result: {error}"), place, advice)
        };
        let head: Head = serde_json::from_str(text).map_err(no_result)?;
        if head.format != RESULT_FORMAT {
            let what = format!("this is a file of format {:?}, not {RESULT_FORMAT:?}", head.format);
            return Err(Error::failed(what, place, "pass a file that sawmill bench --json wrote"));
        }
        if head.version == 0 || head.version > RESULT_VERSION {
            let what = format!("it has version {} of the format", head.version);
            let advice =
                format!("read it with a newer sawmill; this one reads versions 1 to {RESULT_VERSION}");
            return Err(Error::failed(what, place, advice));
        }
        let mut file: Self = serde_json::from_str(text).map_err(no_result)?;
        file.cases.iter_mut().try_for_each(Case::recompute).map_err(|what| {
            let advice = "pass a file that sawmill bench --json wrote";
            Error::failed(format!("the result contradicts itself: {what}"), place, advice)
        })?;
        Ok(file)
    }

    /// Writes the file completely or not at all, by way of a new file beside it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_whole(path, self.to_json()?.as_bytes())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read; or see [`ResultFile::from_json`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = sawmill_store::read_text(path).map_err(|error| {
            Error::failed(format!("the results cannot be read: {error}"), path.display().to_string(), "")
        })?;
        Self::from_json(&text, &path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn side(name: &str, walls: &[u64]) -> SideResult {
        let run =
            |millis: &u64| Run { wall: Duration::from_millis(*millis), rows: Some(1000), ..Run::default() };
        SideResult::new(name, 1, walls.iter().map(run).collect())
    }

    fn file(label: &str, walls: &[u64]) -> ResultFile {
        let mut file = ResultFile::new(label, "sawmill bench gen");
        let sides = vec![side("sawmill", walls), side("other", &[200, 210, 220, 205, 215])];
        let parameters = BTreeMap::from([("writers".to_owned(), "2".to_owned())]);
        file.cases.push(Case::new("gen", parameters, sides).unwrap());
        file
    }

    #[test]
    fn a_file_survives_a_round_trip_through_json_and_disk() {
        let file = file("first", &[100, 110, 120, 105, 115]);
        let path = std::env::temp_dir().join(format!("sawmill-results-{}.json", std::process::id()));
        file.write(&path).unwrap();
        let read = ResultFile::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), file);
        let case = &file.cases[0];
        assert_eq!(case.title(), "gen writers=2");
        assert_eq!(case.comparisons[0].comparison.verdict, crate::Verdict::Faster);
        assert_eq!(case.sides[0].median_run(), Some(1), "110 is the median of the five");
        assert!((case.sides[0].rows_per_second().unwrap() - 1000.0 / 0.11).abs() < 1e-6);
    }

    #[test]
    fn a_baseline_is_compared_case_by_case() {
        let baseline = file("before", &[100, 110, 120, 105, 115]);
        let mut now = file("after", &[300, 310, 320, 305, 315]);
        now.cases[0].compare_with_baseline(&baseline).unwrap();
        let found = now.cases[0].comparisons.last().unwrap();
        assert_eq!(found.with, "before");
        assert!(found.comparison.slower_by_more_than(0.05));
    }

    #[test]
    fn files_that_are_not_results_or_too_new_are_rejected_by_name() {
        for (text, what) in [
            ("[]", "this is not a benchmark result"),
            (r#"{"format":"other","version":1}"#, "this is a file of format \"other\""),
            (r#"{"format":"sawmill-bench","version":99}"#, "it has version 99"),
            (r#"{"format":"sawmill-bench","version":1}"#, "this is not a benchmark result"),
        ] {
            let error = ResultFile::from_json(text, "a.json").unwrap_err();
            assert!(error.what().starts_with(what), "{error}");
            assert_eq!(error.place(), "a.json");
        }
    }
}
