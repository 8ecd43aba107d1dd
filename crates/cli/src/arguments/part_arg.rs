//! `--part`: which of several processes of one job this is, given or as a scheduler says it.
//!
//! - Kubernetes, Job with `completionMode: Indexed`: `JOB_COMPLETION_INDEX` counts from 0
//!   (<https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode>). Nothing tells the number of
//!   completions, so it has to be given.
//! - Slurm, job arrays: `SLURM_ARRAY_TASK_ID` goes from `SLURM_ARRAY_TASK_MIN` to `SLURM_ARRAY_TASK_MAX` in steps of
//!   `SLURM_ARRAY_TASK_STEP` (<https://slurm.schedmd.com/job_array.html>). An array with gaps (`--array=1,3,7`) is refused.
//! - AWS Batch, array jobs: `AWS_BATCH_JOB_ARRAY_INDEX` counts from 0, `AWS_BATCH_JOB_ARRAY_SIZE` is the number
//!   (<https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html>).

use std::env;

use sawmill_loader::Part;

/// Parses a part: `K/N`, or `auto/N` or `auto` for what the scheduler says.
pub(crate) fn part(text: &str) -> Result<Part, String> {
    let (number, of) = numbers(text)?;
    Part::new(number, of).ok_or_else(|| format!("{of} parts are too many: {} at most", Part::MAX))
}

/// The part's number, from 1 to the number of parts, and this.
pub(crate) fn numbers(text: &str) -> Result<(u32, u32), String> {
    parsed(text, &|name| env::var(name).ok())
}

/// Reads a variable of the environment.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

fn parsed(text: &str, variables: Variables<'_>) -> Result<(u32, u32), String> {
    let (number, of) = match text.split_once('/') {
        None if text == "auto" => of_scheduler(None, variables)?,
        Some(("auto", of)) => of_scheduler(Some(whole(of, "the number of parts")?), variables)?,
        Some((number, of)) => (whole(number, "the part")?, whole(of, "the number of parts")?),
        None => return Err("give K/N, such as 2/4, or auto/N under a job scheduler".to_owned()),
    };
    match (1..=of).contains(&number) {
        true => Ok((number, of)),
        false => Err(format!("there is no part {number} of {of}; parts are numbered from 1")),
    }
}

/// The part's number from 1, and how many there are, from the variables of the one scheduler that has set them.
fn of_scheduler(given: Option<u32>, variables: Variables<'_>) -> Result<(u32, u32), String> {
    let number = |name: &str| variables(name).map_or(Ok(None), |text| whole(&text, name).map(Some));
    let from_zero = |index: Option<u32>| index.map(|index| index.saturating_add(1));
    let slurm = number("SLURM_ARRAY_TASK_ID")?.map(|id| of_slurm(id, &number)).transpose()?;
    let found: Vec<(&str, u32, Option<u32>)> = [
        ("JOB_COMPLETION_INDEX", from_zero(number("JOB_COMPLETION_INDEX")?), None),
        ("SLURM_ARRAY_TASK_ID", slurm, number("SLURM_ARRAY_TASK_COUNT")?),
        (
            "AWS_BATCH_JOB_ARRAY_INDEX",
            from_zero(number("AWS_BATCH_JOB_ARRAY_INDEX")?),
            number("AWS_BATCH_JOB_ARRAY_SIZE")?,
        ),
    ]
    .into_iter()
    .filter_map(|(name, part, of)| Some((name, part?, of)))
    .collect();
    match found.as_slice() {
        [] => Err(
            "auto needs JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID or AWS_BATCH_JOB_ARRAY_INDEX, and none is \
                   set: give K/N"
                .to_owned(),
        ),
        [(name, part, of)] => match (given, of) {
            (Some(given), Some(of)) if given != *of => {
                Err(format!("auto/{given}, but the scheduler of {name} runs {of} processes"))
            }
            (Some(of), _) => Ok((*part, of)),
            (None, Some(of)) => Ok((*part, *of)),
            (None, None) => Err(format!("{name} does not say how many parts there are: give auto/N")),
        },
        [(one, ..), (other, ..), ..] => Err(format!("both {one} and {other} are set: give K/N")),
    }
}

/// The part of the element `id` of a Slurm array. Its place among the ids is known only if none is left out.
fn of_slurm(id: u32, number: &dyn Fn(&str) -> Result<Option<u32>, String>) -> Result<u32, String> {
    let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
    let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
    let (last, count) = (number("SLURM_ARRAY_TASK_MAX")?, number("SLURM_ARRAY_TASK_COUNT")?);
    if let (Some(last), Some(count)) = (last, count) {
        let all = last.saturating_sub(first) / step + 1;
        if all != count {
            return Err(format!(
                "the array has {count} of the {all} ids from {first} to {last} in steps of {step} \
                 (SLURM_ARRAY_TASK_COUNT, _MIN, _MAX, _STEP), so which part id {id} is cannot be told: use consecutive \
                 ids (--array=1-{count}), or give --part K/N"
            ));
        }
    }
    Ok(id.saturating_sub(first) / step + 1)
}

fn whole(text: &str, what: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{what} is {text:?}, not a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        parsed(text, &value).map(|(number, of)| format!("{number}/{of}"))
    }

    #[test]
    fn a_part_is_given_or_comes_from_the_scheduler() {
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "14"),
            ("SLURM_ARRAY_TASK_MIN", "10"),
            ("SLURM_ARRAY_TASK_MAX", "16"),
            ("SLURM_ARRAY_TASK_STEP", "2"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
        ];
        let batch = [("AWS_BATCH_JOB_ARRAY_INDEX", "7"), ("AWS_BATCH_JOB_ARRAY_SIZE", "8")];
        assert_eq!(with("2/4", &[]).unwrap(), "2/4");
        assert_eq!(with("auto/8", &[("JOB_COMPLETION_INDEX", "0")]).unwrap(), "1/8");
        assert_eq!(with("auto", &slurm).unwrap(), "3/4");
        assert_eq!(with("auto", &batch).unwrap(), "8/8");
        assert_eq!(with("auto/8", &batch).unwrap(), "8/8");
    }

    #[test]
    fn what_is_no_part_is_refused_with_its_reason() {
        let gaps = [
            ("SLURM_ARRAY_TASK_ID", "3"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_MAX", "7"),
            ("SLURM_ARRAY_TASK_STEP", "1"),
            ("SLURM_ARRAY_TASK_COUNT", "3"),
        ];
        let both = [("JOB_COMPLETION_INDEX", "0"), ("SLURM_ARRAY_TASK_ID", "1")];
        let index = ("JOB_COMPLETION_INDEX", "8");
        for (text, variables, reason) in [
            ("0/4", &[][..], "no part 0 of 4"),
            ("5/4", &[], "no part 5 of 4"),
            ("2", &[], "K/N"),
            ("x/4", &[], "\"x\""),
            ("auto", &[], "JOB_COMPLETION_INDEX"),
            ("auto", &[index], "auto/N"),
            ("auto/8", &[index], "no part 9 of 8"),
            ("auto/8", &[("JOB_COMPLETION_INDEX", "-1")], "\"-1\""),
            ("auto/3", &[("AWS_BATCH_JOB_ARRAY_INDEX", "0"), ("AWS_BATCH_JOB_ARRAY_SIZE", "4")], "runs 4"),
            ("auto/4", &both, "both"),
            ("auto", &gaps, "3 of the 7 ids from 1 to 7"),
            ("auto/3", &gaps, "--part K/N"),
        ] {
            let error = with(text, variables).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
