//! `--parse-only`: reads and parses all rows, in any order, and writes nothing.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_schema::DataType;
use sawmill_profile::{Phase, PhaseReport, Profile};
use sawmill_source::{Source, Unit, UnitReader};
use serde::Serialize;

use super::ConvertArgs;
use super::units_in_order::UnitsInOrder;
use crate::arguments::inputs::Inputs;
use crate::error::Error;
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

/// Rows of a unit and of a batch.
const UNIT_ROWS: u64 = 64 * 1024;
const BATCH_ROWS: usize = 1024;

/// What `--json` prints.
#[derive(Serialize)]
struct Parsed<'a> {
    files: usize,
    rows: u64,
    bytes_in: u64,
    /// Records of text that cannot be read, and are not among the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    records_left_out: Option<u64>,
    sums: Vec<SumOf>,
    /// All phases, in their order.
    phases: &'a [PhaseReport],
}

/// The sum of a column of numbers.
#[derive(Serialize)]
struct SumOf {
    column: String,
    sum: Sum,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
enum Sum {
    Whole(i128),
    Float(f64),
}

/// Reads all rows on all threads, and prints how many there are and the sums of the columns of numbers.
pub(super) fn run(
    args: &ConvertArgs,
    source: &dyn Source,
    inputs: &Inputs,
    profile: &Profile,
    console: Console,
) -> Result<(), Error> {
    let phase = profile.phase("parse");
    let work = || read(source, args.threads(), &phase);
    let sums = console.with_bar("parse", source.rows(), &phase, work)?;
    source.check_unchanged()?;
    let rows = phase.rows();
    let mut phases = inputs.phases.clone();
    phases.push(phase.finish());
    let fields = source.schema().fields().iter().zip(sums);
    let sums = fields.filter_map(|(field, sum)| Some(SumOf { column: field.name().clone(), sum: sum? }));
    let parsed = Parsed {
        files: source.files().len(),
        rows,
        bytes_in: source.files().iter().map(|file| file.bytes).sum(),
        records_left_out: inputs.records_left_out_in_all(),
        sums: sums.collect(),
        phases: &phases,
    };
    console.result(&parsed, || summary(&parsed))
}

/// Returns the sum of each column, if it is one of numbers.
fn read(source: &dyn Source, threads: usize, phase: &Phase) -> Result<Vec<Option<Sum>>, Error> {
    let units =
        UnitsInOrder { source, threads: ("parser", threads), unit_rows: UNIT_ROWS, batch_rows: BATCH_ROWS };
    let control = interrupt::control(phase);
    let mut sums = vec![None; source.schema().fields().len()];
    let sums_of = |reader: &mut dyn UnitReader, unit: &Unit, give: &mut dyn FnMut(Vec<_>) -> bool| {
        let mut of_unit = vec![None; source.schema().fields().len()];
        while let Some(batch) = reader.next_batch()? {
            control.check()?;
            add_batch(&mut of_unit, &batch);
            phase.add_rows(batch.num_rows() as u64);
        }
        phase.add_bytes(unit.bytes);
        give(of_unit);
        Ok(())
    };
    // In the order of the rows, so that the sums of floats are the same on any number of threads.
    units.read(&control, sums_of, |of_unit| -> Result<(), Error> {
        sums.iter_mut().zip(of_unit).for_each(|(sum, more)| add(sum, more));
        Ok(())
    })?;
    Ok(sums)
}

fn add_batch(sums: &mut [Option<Sum>], batch: &RecordBatch) {
    for (sum, column) in sums.iter_mut().zip(batch.columns()) {
        let array = column.as_ref();
        add(
            sum,
            match array.data_type() {
                DataType::Int16 => summed::<Int16Type, _>(array, i128::from).map(Sum::Whole),
                DataType::Int32 => summed::<Int32Type, _>(array, i128::from).map(Sum::Whole),
                DataType::Int64 => summed::<Int64Type, _>(array, i128::from).map(Sum::Whole),
                DataType::Float32 => summed::<Float32Type, _>(array, f64::from).map(Sum::Float),
                DataType::Float64 => summed::<Float64Type, _>(array, f64::from).map(Sum::Float),
                _ => None,
            },
        );
    }
}

fn add(sum: &mut Option<Sum>, more: Option<Sum>) {
    *sum = match (*sum, more) {
        // 128 bits overflow only beyond 2^64 rows.
        (Some(Sum::Whole(a)), Some(Sum::Whole(b))) => Some(Sum::Whole(a.wrapping_add(b))),
        (Some(Sum::Float(a)), Some(Sum::Float(b))) => Some(Sum::Float(a + b)),
        (sum, more) => sum.or(more),
    };
}

fn summed<T: ArrowPrimitiveType, S: std::iter::Sum>(
    array: &dyn Array,
    wide: impl Fn(T::Native) -> S,
) -> Option<S> {
    let values = array.as_primitive_opt::<T>()?;
    Some(match values.null_count() {
        0 => values.values().iter().map(|value| wide(*value)).sum(),
        _ => values.iter().flatten().map(wide).sum(),
    })
}

fn summary(parsed: &Parsed<'_>) -> String {
    let seconds: f64 = parsed.phases.iter().map(|phase| phase.wall.as_secs_f64()).sum();
    let each = parsed.phases.iter().map(|phase| format!("{} {:.2} s", phase.name, phase.wall.as_secs_f64()));
    let each = each.collect::<Vec<_>>().join(", ");
    let rate = parsed.bytes_in as f64 / seconds.max(1e-9);
    let mut text = format!(
        "parsed {} of {}, {} in {seconds:.2} s ({each}), {}/s\n",
        phases::counted(parsed.rows, "row"),
        phases::counted(parsed.files as u64, "file"),
        phases::bytes(parsed.bytes_in),
        phases::bytes(rate as u64),
    );
    for SumOf { column, sum } in &parsed.sums {
        text += &match sum {
            Sum::Whole(sum) => format!("sum of {column}: {sum}\n"),
            Sum::Float(sum) => format!("sum of {column}: {sum}\n"),
        };
    }
    text
}
