//! The outcome of a benchmark: its table, its files, and whether it passes.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use sawmill_profile::{
    Case, Commit, Filesystem, FoldedStacks, Method, ResultFile, SampledStacks, parse_count, results_table,
    sweep_tables, write_html_report,
};

use crate::arguments::paths::each_has_its_file;
use crate::bench::case::Measured;
use crate::bench::plan::PlanArgs;
use crate::error::{Error, Exit, Result};
use crate::forms;
use crate::screen::console::Console;
use crate::screen::flame;

/// Results, collected case by case.
pub(crate) struct Outcome<'a> {
    plan: &'a PlanArgs,
    baseline: Option<ResultFile>,
    file: ResultFile,
    /// The stacks of each case, without names yet.
    stacks: Vec<Option<SampledStacks>>,
}

impl<'a> Outcome<'a> {
    /// No results yet. Rejects places that cannot take them, before any time is spent.
    pub(crate) fn new(plan: &'a PlanArgs) -> Result<Self> {
        if plan.fail_if_slower.is_some() && plan.baseline.is_none() && plan.against.is_empty() {
            let advice = "give --baseline or --against";
            return Err(Error::usage("nothing to compare with", "--fail-if-slower", advice));
        }
        each_has_its_file([("--json-file", plan.json_file.as_ref()), ("--html", plan.html.as_ref())])?;
        if let Some(path) = &plan.json_file {
            flame::may_replace(path, b'{', &format!("--json-file {}", path.display()))?;
        }
        if let Some(path) = &plan.html {
            flame::may_replace(path, b'<', &format!("--html {}", path.display()))?;
        }
        // The report names it by its file.
        let named = |path: &PathBuf| -> Result<ResultFile> {
            Ok(ResultFile { label: path.display().to_string(), ..ResultFile::read(path)? })
        };
        let baseline = plan.baseline.as_ref().map(named).transpose()?;
        let mut file = ResultFile::new("", &forms::shown(crate::program().iter().chain(crate::words())));
        file.label = file.started.clone();
        file.versions.insert("sawmill".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        // The folder of the source that this program was built from, if it still exists.
        file.commit = Commit::read(Path::new(env!("CARGO_MANIFEST_DIR")));
        Ok(Outcome { plan, baseline, file, stacks: Vec::new() })
    }

    /// Adds a case, compared with the baseline's.
    ///
    /// # Errors
    ///
    /// The two did not do the same work.
    pub(crate) fn add(&mut self, measured: Measured) -> Result<()> {
        let Measured { mut case, versions, folders, stacks } = measured;
        self.file.versions.extend(versions);
        for filesystem in folders.iter().filter_map(|folder| Filesystem::new(folder)) {
            if !self.file.filesystems.contains(&filesystem) {
                self.file.filesystems.push(filesystem);
            }
        }
        if let Some(baseline) = &self.baseline {
            same_work(&case, baseline)?;
            case.compare_with_baseline(baseline)?;
        }
        self.file.cases.push(case);
        self.stacks.push(stacks);
        Ok(())
    }

    /// Records the version of a participant.
    pub(crate) fn version(&mut self, of: &str, version: &str) {
        self.file.versions.insert(of.to_owned(), version.to_owned());
    }

    /// Writes and prints the results, then decides whether the benchmark passes.
    pub(crate) fn report(mut self, flamegraph: Option<&Path>, console: Console) -> Result<()> {
        let mut together = FoldedStacks::default();
        for (case, stacks) in self.file.cases.iter_mut().zip(&self.stacks) {
            let (Some(side), Some(stacks)) = (case.sides.first_mut(), stacks) else { continue };
            let named = stacks.named();
            together.merge(&named);
            side.folded_stacks = Some(named.to_string());
        }
        if let Some(path) = flamegraph {
            flame::write(path, &together, console)?;
        }
        if let Some(path) = &self.plan.json_file {
            self.file.write(path)?;
        }
        if let Some(path) = &self.plan.html {
            write_html_report(path, std::slice::from_ref(&self.file))?;
        }
        console.result(&self.file, || text(&self.file))?;
        self.plan.fail_if_slower.map_or(Ok(()), |share| verdict(&self.file, share))
    }
}

/// Rejects a baseline that did other work.
fn same_work(case: &Case, baseline: &ResultFile) -> Result<()> {
    let same = |theirs: &&Case| theirs.name == case.name && theirs.parameters == case.parameters;
    let Some(theirs) = baseline.cases.iter().find(same) else {
        let advice = "measure what the baseline measured";
        let what = format!("the baseline has no case {:?}", case.title());
        return Err(Error::usage(what, &baseline.label, advice));
    };
    let work = |case: &Case| {
        let run = case.sides.first().and_then(|side| side.runs.first());
        run.map(|run| (run.rows, run.checksum.clone()))
    };
    if work(case) != work(theirs) {
        let shown = |case| match work(case) {
            Some((Some(rows), None)) => format!("{rows} rows"),
            Some((Some(rows), Some(sum))) => format!("{rows} rows of content {sum}"),
            Some((None, checksum)) => checksum.unwrap_or_default(),
            None => "nothing".to_owned(),
        };
        let what = format!("the baseline did other work: {}, now {}", shown(theirs), shown(case));
        return Err(Error::usage(what, &baseline.label, "use the same input and the same options"));
    }
    Ok(())
}

/// An error if ours is slower by more than `share`, or if there are too few runs to tell.
fn verdict(file: &ResultFile, share: f64) -> Result<()> {
    let mut slower = Vec::new();
    for case in &file.cases {
        for found in &case.comparisons {
            let place = format!("{} with {}", case.title(), found.with);
            if found.comparison.method == Method::TooFewRuns {
                let advice = "give --runs 6 or more, also when saving the baseline";
                return Err(Error::usage("too few runs to tell whether it is slower", place, advice));
            }
            if found.comparison.slower_by_more_than(share) {
                slower.push(format!("{place}: takes {:.3} times as long", found.comparison.ratio));
            }
        }
    }
    if slower.is_empty() {
        Ok(())
    } else {
        let what = format!("slower by more than {}%", share * 100.0);
        Err(Error::new(Exit::Slower, what, slower.join("; "), ""))
    }
}

/// The table of all runs, and one for each swept parameter.
fn text(file: &ResultFile) -> String {
    let mut text = results_table(file).to_string();
    let findings = file.cases.iter().filter_map(|case| {
        let found = case.sides.first()?.bottleneck.as_ref()?;
        Some(format!("{}: {found}\n", case.title()))
    });
    let findings: String = findings.collect();
    if !findings.is_empty() {
        text += &format!("\n{findings}");
    }
    let parameters = file.cases.first().map(|case| case.parameters.keys()).into_iter().flatten();
    let parameters: Vec<&String> = parameters.collect();
    // A table of a number's values shows how it scales. Names, such as the kinds of a table, get tables only
    // if no number is swept; otherwise they are the titles of its tables.
    let is_number = |name: &str| {
        file.cases
            .iter()
            .all(|case| case.parameters.get(name).is_some_and(|value| parse_count(value).is_ok()))
    };
    let numbers = parameters.iter().any(|name| is_number(name));
    for parameter in parameters.into_iter().filter(|name| !numbers || is_number(name)) {
        for (title, table) in sweep_tables(&file.cases, parameter) {
            // Writing to a String does not fail.
            let _ = write!(text, "\n{title}\n{table}");
        }
    }
    text
}
