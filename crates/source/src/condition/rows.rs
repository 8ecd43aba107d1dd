//! Evaluates a condition on batches of a file: finds the rows for which it is true.
//!
//! Negations are pushed down to the comparisons. Each comparison becomes the set of values for which it is
//! true. Only "all of these" and "any of these" remain, which need not distinguish false from unknown.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayAccessor, RecordBatch};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, Schema};
use half::f16;
use sawmill_profile::{Error, Kind, Result, known_columns};

use crate::condition::literal::{Domain, domain, order_of_f32, order_of_f64, value_type};
use crate::condition::value_set::{Next, ValueSet};
use crate::condition::{Condition, Literal, Node, Operator};
use crate::hive::Folder;
use crate::parquet_files::interval::is_interval;

/// A condition resolved against the columns of a file.
pub(crate) struct RowTest {
    /// The columns that it tests, in the order of the file.
    pub columns: Vec<TestedColumn>,
    pub(super) test: Test,
}

/// A column that a condition tests.
pub(crate) struct TestedColumn {
    /// Its name in the file's footer.
    pub name: String,
    /// Its position among the file's top-level fields.
    pub place: usize,
    pub data_type: DataType,
}

pub(super) enum Test {
    /// A test of the value of the n-th column.
    Value(usize, ValueTest),
    All(Vec<Test>),
    Any(Vec<Test>),
}

impl Test {
    /// Returns the test that all rows pass, or none.
    fn decided(passes: bool) -> Self {
        if passes { Self::All(Vec::new()) } else { Self::Any(Vec::new()) }
    }
}

/// A test of a value.
pub(super) enum ValueTest {
    Whole(ValueSet<i128>),
    Bytes(ValueSet<Vec<u8>>),
    Like { pattern: String, negated: bool },
    Null(bool),
}

impl RowTest {
    /// The test that all rows pass.
    pub(crate) fn all() -> Self {
        Self { columns: Vec::new(), test: Test::decided(true) }
    }

    /// Resolves the condition against a file's columns and those that its folders name.
    ///
    /// # Errors
    /// A column that does not exist or is nested; a literal that is not a value of its column's type.
    pub(crate) fn new(condition: &Condition, schema: &Schema, folders: &[Folder]) -> Result<Self> {
        let mut places = Vec::new();
        find_columns(&condition.0, schema, folders, &mut places)?;
        places.sort_unstable();
        places.dedup();
        let column = |place: usize| {
            let field = schema.field(place);
            TestedColumn { name: field.name().clone(), place, data_type: field.data_type().clone() }
        };
        let columns: Vec<TestedColumn> = places.into_iter().map(column).collect();
        let test = test_of(&condition.0, &columns, schema, folders, false)?;
        Ok(Self { columns, test })
    }

    /// Returns the rows of a batch of [`columns`](Self::columns) for which the condition is true.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        rows_of(&self.test, batch)
    }
}

fn find_columns(node: &Node, schema: &Schema, folders: &[Folder], places: &mut Vec<usize>) -> Result<()> {
    match node {
        Node::Not(inner) => return find_columns(inner, schema, folders, places),
        Node::And(nodes) | Node::Or(nodes) => {
            return nodes.iter().try_for_each(|node| find_columns(node, schema, folders, places));
        }
        _ => {}
    }
    let name = node.column().unwrap_or_default();
    if let Some(folder) = folders.iter().find(|folder| folder.field.name() == name) {
        return testable(&folder.field, node);
    }
    let Ok(place) = schema.index_of(name) else {
        let fields = schema.fields().iter().map(AsRef::as_ref);
        let names =
            fields.chain(folders.iter().map(|folder| &folder.field)).map(|field| field.name().as_str());
        return Err(Error::new(Kind::Config, format!("there is no column {name:?}"))
            .at(format!("the condition {node}"))
            .advise(known_columns(name, names)));
    };
    if *schema.field(place).data_type() == DataType::Null {
        // All of its values are null in this file; other files have some.
        return Ok(());
    }
    testable(schema.field(place), node)?;
    places.push(place);
    Ok(())
}

/// Checks that a condition can test the values of a column.
fn testable(field: &Field, node: &Node) -> Result<()> {
    let (name, data_type) = (field.name(), field.data_type());
    let interval = is_interval(field);
    if domain(data_type).is_none() || interval {
        let shown = if interval { "INTERVAL".to_owned() } else { data_type.to_string() };
        let what = format!("values of column {name:?}, which is {shown}, cannot be in a condition");
        return Err(Error::new(Kind::Config, what).at(format!("the condition {node}")).advise(
            "a condition can test numbers, dates, times, text, bytes and booleans that are not nested",
        ));
    }
    Ok(())
}

fn test_of(
    node: &Node,
    columns: &[TestedColumn],
    schema: &Schema,
    folders: &[Folder],
    negated: bool,
) -> Result<Test> {
    let tests = |nodes: &[Node]| {
        nodes.iter().map(|node| test_of(node, columns, schema, folders, negated)).collect::<Result<_>>()
    };
    match node {
        Node::Not(inner) => return test_of(inner, columns, schema, folders, !negated),
        // By De Morgan, a negated `and` is an `or` of negations.
        Node::And(nodes) | Node::Or(nodes) => {
            let all = matches!(node, Node::And(_)) != negated;
            return Ok(if all { Test::All(tests(nodes)?) } else { Test::Any(tests(nodes)?) });
        }
        _ => {}
    }
    let name = node.column().unwrap_or_default();
    if schema.field_with_name(name).is_ok_and(|field| *field.data_type() == DataType::Null) {
        return Ok(Test::decided(matches!(node, Node::IsNull { .. }) && !negated));
    }
    let test = |data_type: &DataType| {
        value_test(node, data_type, negated).map_err(|what| {
            Error::new(Kind::Config, format!("column {name:?} is {data_type}: {what}"))
                .at(format!("the condition {node}"))
                .advise("write a value of the column's type")
        })
    };
    if let Some(folder) = folders.iter().find(|folder| folder.field.name() == name) {
        let passes = values(&test(folder.field.data_type())?, folder.value.array(1).as_ref());
        return Ok(Test::decided(passes.is_some_and(|rows| rows.value(0))));
    }
    let found = columns.iter().enumerate().find(|(_, column)| column.name == name);
    let Some((position, column)) = found else {
        return Err(Error::new(Kind::Config, format!("there is no column {name:?}")));
    };
    Ok(Test::Value(position, test(value_type(&column.data_type))?))
}

pub(super) fn value_test(node: &Node, data_type: &DataType, negated: bool) -> Result<ValueTest, String> {
    Ok(match node {
        Node::IsNull { .. } => ValueTest::Null(!negated),
        Node::Like { pattern, .. } if data_type.is_string() => {
            ValueTest::Like { pattern: pattern.clone(), negated }
        }
        Node::Like { .. } => return Err("only text can be compared with a pattern".into()),
        _ if domain(data_type) == Some(Domain::Whole) => {
            let point = |literal: &Literal| literal.point(data_type).map(|point| (point.at, point.exact));
            ValueTest::Whole(value_set(node, negated, point)?)
        }
        _ => ValueTest::Bytes(value_set(node, negated, |literal| Ok((literal.bytes(data_type)?, true)))?),
    })
}

/// The values for which a comparison is true, or false. `place` is where a literal is, and whether it is a value;
/// otherwise it is between that value and the next.
fn value_set<T: Next>(
    node: &Node,
    negated: bool,
    place: impl Fn(&Literal) -> Result<(T, bool), String>,
) -> Result<ValueSet<T>, String> {
    use Operator::{AtLeast, AtMost, Equal, Greater, Less, NotEqual};
    let (operator, literals) = match node {
        Node::Compare { operator, literal, .. } => (*operator, std::slice::from_ref(literal)),
        Node::OneOf { literals, .. } => (Equal, literals.as_slice()),
        _ => return Err("expected a comparison".into()),
    };
    let mut places = literals.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let set = match (operator, places.pop()) {
        (Less | AtLeast, Some((value, true))) => ValueSet::less_than(value),
        // The values below a literal between two are those up to the first.
        (Less | AtLeast | AtMost | Greater, Some((value, _))) => ValueSet::at_most(&value),
        (_, last) => {
            let values = places.into_iter().chain(last).filter(|(_, exact)| *exact);
            ValueSet::new(values.map(|(value, _)| value).collect())
        }
    };
    let inverse = matches!(operator, NotEqual | AtLeast | Greater);
    Ok(if inverse != negated { set.complement() } else { set })
}

fn rows_of(test: &Test, batch: &RecordBatch) -> Result<BooleanBuffer> {
    let several = |tests: &[Test], none: bool| {
        let mut rows: Option<BooleanBuffer> = None;
        for test in tests {
            let these = rows_of(test, batch)?;
            rows = Some(match rows {
                None => these,
                Some(rows) if none => &rows & &these,
                Some(rows) => &rows | &these,
            });
        }
        Ok(rows.unwrap_or_else(|| uniform(none, batch.num_rows())))
    };
    match test {
        Test::All(tests) => several(tests, true),
        Test::Any(tests) => several(tests, false),
        Test::Value(position, test) => {
            let column = batch.columns().get(*position);
            let rows = column.and_then(|column| values(test, column.as_ref()));
            rows.ok_or_else(|| Error::new(Kind::Source, "a column has another type than the file's schema"))
        }
    }
}

fn uniform(value: bool, rows: usize) -> BooleanBuffer {
    if value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) }
}

/// Returns the rows of a column whose value passes; `None` if the column has an unexpected type.
fn values(test: &ValueTest, column: &dyn Array) -> Option<BooleanBuffer> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        if let ValueTest::Null(wanted) = test {
            let nulls = column.logical_nulls();
            let valid = nulls.map_or_else(|| uniform(true, column.len()), |nulls| nulls.into_inner());
            return Some(if *wanted { !&valid } else { valid });
        }
        if dictionary.values().is_empty() {
            return Some(uniform(false, column.len()));
        }
        let passing = values(test, dictionary.values().as_ref())?;
        let keys = dictionary.normalized_keys();
        let rows = BooleanBuffer::collect_bool(keys.len(), |row| {
            keys.get(row).is_some_and(|key| *key < passing.len() && passing.value(*key))
        });
        return Some(without_nulls(rows, column));
    }
    let rows = match test {
        ValueTest::Null(wanted) => {
            let valid =
                column.nulls().map_or_else(|| uniform(true, column.len()), |nulls| nulls.inner().clone());
            return Some(if *wanted { !&valid } else { valid });
        }
        ValueTest::Whole(set) => whole_rows(set, column)?,
        ValueTest::Bytes(set) => byte_rows(column, |value| set.contains(value))?,
        ValueTest::Like { pattern, negated } => {
            byte_rows(column, |value| like(pattern.as_bytes(), value) != *negated)?
        }
    };
    Some(without_nulls(rows, column))
}

fn without_nulls(rows: BooleanBuffer, column: &dyn Array) -> BooleanBuffer {
    match column.nulls() {
        Some(nulls) => &rows & nulls.inner(),
        None => rows,
    }
}

fn whole_rows(set: &ValueSet<i128>, column: &dyn Array) -> Option<BooleanBuffer> {
    use DataType::{
        Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64,
        Int8, Int16, Int32, Int64, Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
    };
    macro_rules! integers {
        ($native:ty) => {
            in_set(
                set,
                natives::<$native>(column)?.as_ref(),
                |value| value,
                <$native>::MIN,
                |cut| <$native>::try_from(cut).ok(),
            )
        };
    }
    Some(match column.data_type() {
        Boolean => {
            let values = column.as_boolean_opt()?.values();
            match (set.contains(&0), set.contains(&1)) {
                (false, true) => values.clone(),
                (true, false) => !values,
                (both, _) => uniform(both, column.len()),
            }
        }
        Int8 => integers!(i8),
        Int16 => integers!(i16),
        Int32 | Date32 | Time32(_) | Decimal32(..) => integers!(i32),
        Int64 | Date64 | Time64(_) | Timestamp(..) | Decimal64(..) => integers!(i64),
        UInt8 => integers!(u8),
        UInt16 => integers!(u16),
        UInt32 => integers!(u32),
        UInt64 => integers!(u64),
        Decimal128(..) => integers!(i128),
        Decimal256(..) => {
            let values = natives::<i256>(column)?;
            in_set(set, &values, |value| value, i256::MIN, |cut| Some(i256::from_i128(cut)))
        }
        Float16 => {
            let order = |value: f16| order_of_f32(value.to_f32());
            in_set(set, &natives::<f16>(column)?, order, i32::MIN, |cut| i32::try_from(cut).ok())
        }
        Float32 => {
            in_set(set, &natives::<f32>(column)?, order_of_f32, i32::MIN, |cut| i32::try_from(cut).ok())
        }
        Float64 => {
            in_set(set, &natives::<f64>(column)?, order_of_f64, i64::MIN, |cut| i64::try_from(cut).ok())
        }
        _ => return None,
    })
}

/// Returns the values of a column of primitives.
fn natives<N: ArrowNativeType>(column: &dyn Array) -> Option<ScalarBuffer<N>> {
    let data = column.to_data();
    let buffer = data.buffers().first()?;
    Some(ScalarBuffer::new(buffer.clone(), data.offset(), data.len()))
}

/// Returns the rows whose values, mapped by `order`, are in the set. `cut` converts an integer to a mapped
/// value; one without a mapped value is below `least` or above all values.
fn in_set<N: Copy, K: Copy + Ord>(
    set: &ValueSet<i128>,
    values: &[N],
    order: impl Fn(N) -> K,
    least: K,
    cut: impl Fn(i128) -> Option<K>,
) -> BooleanBuffer {
    let mut low = set.low;
    let mut cuts = Vec::with_capacity(set.cuts.len());
    for place in &set.cuts {
        match cut(*place) {
            Some(key) if key == least => low = !low,
            Some(key) => cuts.push(key),
            // Below all values.
            None if *place < 0 => low = !low,
            None => {}
        }
    }
    let value = |row: usize| order(values[row]);
    match cuts[..] {
        [] => uniform(low, values.len()),
        [cut] => BooleanBuffer::collect_bool(values.len(), |row| low != (value(row) >= cut)),
        [from, to] => BooleanBuffer::collect_bool(values.len(), |row| {
            let value = value(row);
            low != ((value >= from) & (value < to))
        }),
        _ => BooleanBuffer::collect_bool(values.len(), |row| {
            let value = value(row);
            low != (cuts.partition_point(|cut| *cut <= value) % 2 == 1)
        }),
    }
}

fn byte_rows(column: &dyn Array, passes: impl Fn(&[u8]) -> bool) -> Option<BooleanBuffer> {
    fn passing<A: ArrayAccessor<Item: AsRef<[u8]>>>(
        array: A,
        passes: impl Fn(&[u8]) -> bool,
    ) -> BooleanBuffer {
        BooleanBuffer::collect_bool(array.len(), |row| passes(array.value(row).as_ref()))
    }
    Some(match column.data_type() {
        DataType::Utf8 => passing(column.as_string_opt::<i32>()?, passes),
        DataType::LargeUtf8 => passing(column.as_string_opt::<i64>()?, passes),
        DataType::Binary => passing(column.as_binary_opt::<i32>()?, passes),
        DataType::LargeBinary => passing(column.as_binary_opt::<i64>()?, passes),
        DataType::Utf8View => passing(column.as_string_view_opt()?, passes),
        DataType::BinaryView => passing(column.as_binary_view_opt()?, passes),
        DataType::FixedSizeBinary(_) => passing(column.as_fixed_size_binary_opt()?, passes),
        _ => return None,
    })
}

/// Whether text matches a pattern in which `%` matches any characters, `_` matches one, and a backslash
/// escapes the next one.
pub(super) fn like(pattern: &[u8], text: &[u8]) -> bool {
    let character = |at: usize| {
        // Bytes 10xxxxxx continue the character before them.
        let more = text.iter().skip(at + 1).take_while(|byte| **byte & 0xc0 == 0x80).count();
        at + 1 + more
    };
    let (mut p, mut t) = (0, 0);
    // Where to continue if the pattern after the last % does not match: the % then matches one byte more.
    let mut retry = None;
    loop {
        let matched = match pattern.get(p) {
            Some(b'%') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'_') if t < text.len() => Some((p + 1, character(t))),
            Some(b'\\') if p + 1 < pattern.len() => {
                (text.get(t) == pattern.get(p + 1)).then_some((p + 2, t + 1))
            }
            Some(byte) => (text.get(t) == Some(byte) && *byte != b'_').then_some((p + 1, t + 1)),
            None => (t == text.len()).then_some((p, t)),
        };
        match (matched, retry) {
            (Some(_), _) if p == pattern.len() => return true,
            (Some(next), _) => (p, t) = next,
            (None, Some((after, from))) if from < text.len() => {
                let from = character(from);
                retry = Some((after, from));
                (p, t) = (after, from);
            }
            (None, _) => return false,
        }
    }
}

/// Returns the prefix of all text that matches the pattern.
pub(super) fn prefix(pattern: &str) -> Vec<u8> {
    let end = pattern.find(['%', '_', '\\']).unwrap_or(pattern.len());
    pattern.as_bytes()[..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_matches_patterns() {
        for (pattern, text) in [
            ("a%", "abc"),
            ("%", ""),
            ("_", "ä"),
            ("a_c%", "aäcd"),
            ("%b%d", "abcbd"),
            ("\\%", "%"),
            ("", ""),
        ] {
            assert!(like(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a", "ab"), ("_", ""), ("_", "ab"), ("%b", "abc"), ("\\%", "x"), ("a", ""), ("", "a")]
        {
            assert!(!like(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        assert!(!like("%a".repeat(40).as_bytes(), "a".repeat(39).as_bytes()));
    }
}
