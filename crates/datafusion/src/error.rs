//! Errors in three parts: the problem, the place, and the advice.

use std::error::Error;

use datafusion::error::DataFusionError;

/// A statement or a plan that cannot be executed.
pub(crate) fn refused(what: impl AsRef<str>, place: &str, advice: &str) -> DataFusionError {
    DataFusionError::Plan(format!("{} - {place} - {advice}", what.as_ref()))
}

/// An error of another crate, whose text has all three parts.
pub(crate) fn external(error: impl Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Marks where an error's text begins and ends: Ballista's errors print the structure of the error that they wrap.
#[cfg(feature = "cratedb")]
const FRAME: (&str, &str) = ("<<sawmill ", ">>");

/// An error of a task, for [`received`] to find.
#[cfg(feature = "cluster")]
pub(crate) fn sent(error: &DataFusionError) -> DataFusionError {
    let (mismatch, (begin, end)) = (u8::from(is_mismatch(error)), FRAME);
    DataFusionError::Execution(format!("{begin}{mismatch} {}{end}", text_of(error)))
}

/// The text of an error, without the layers that it passed through, and whether the error says that a table differs
/// from its source.
#[cfg(feature = "cratedb")]
pub(crate) fn received(error: &DataFusionError) -> (String, bool) {
    let text = text_of(error);
    let framed = || {
        let (_, text) = text.split_once(FRAME.0)?;
        let (mismatch, text) = text.split_once(FRAME.1)?.0.split_once(' ')?;
        // Ballista prints text as Rust does.
        Some((text.replace("\\\"", "\"").replace("\\n", "\n"), mismatch == "1"))
    };
    framed().unwrap_or_else(|| (of_task(&text).unwrap_or_else(|| text.clone()), is_mismatch(error)))
}

/// The message inside a task's error, which Ballista prints with the structure of all its layers:
/// `.. runtime execution error: DataFusionError(Shared(External(ArrowError(ParquetError("the message")))))`.
#[cfg(feature = "cratedb")]
fn of_task(text: &str) -> Option<String> {
    let (_, layers) = text.split_once("runtime execution error: ")?;
    let innermost = match layers.split_once("(\"") {
        // Ballista prints text as Rust does.
        Some((_, quoted)) => {
            let mut said = String::new();
            let mut characters = quoted.chars();
            loop {
                match characters.next()? {
                    '"' => break,
                    '\\' => match characters.next()? {
                        'n' => said.push('\n'),
                        other => said.push(other),
                    },
                    other => said.push(other),
                }
            }
            said
        }
        None => layers.rsplit('(').next()?.trim_end().trim_end_matches(')').to_owned(),
    };
    let advice = match innermost.contains("Parquet error") {
        true => " - the same query without --scheduler names the file",
        false => "",
    };
    Some(format!("a task failed: {innermost}{advice}"))
}

#[cfg(all(test, feature = "cratedb"))]
mod tests {
    use super::of_task;

    #[test]
    fn an_error_of_a_task_is_told_without_its_layers() {
        let job =
            "Job x failed: Job failed due to stage 0 failed: Task failed due to runtime execution error: ";
        for (layers, said) in [
            (
                r#"DataFusionError(Shared(External(ArrowError(ParquetError("Parquet error: of \"a\"")))))"#,
                "a task failed: Parquet error: of \"a\" - the same query without --scheduler names the file",
            ),
            ("DataFusionError(Shared(External(ArrowError(DivideByZero))))\n", "a task failed: DivideByZero"),
        ] {
            assert_eq!(of_task(&format!("{job}{layers}")).as_deref(), Some(said));
        }
        assert_eq!(of_task("another error"), None);
    }
}

#[cfg(feature = "cratedb")]
fn is_mismatch(error: &DataFusionError) -> bool {
    let DataFusionError::External(error) = error.find_root() else { return false };
    error
        .downcast_ref::<sawmill_source::Error>()
        .is_some_and(|error| error.kind() == sawmill_source::Kind::Mismatch)
}

/// The text of an error without the names of the layers that it passed through.
#[cfg(feature = "cratedb")]
fn text_of(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Configuration(text) => text.clone(),
        DataFusionError::External(error) => error.to_string(),
        other => other.to_string(),
    }
}
