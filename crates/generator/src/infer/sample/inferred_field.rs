//! A field of an inferred spec: its type, and the sample of its values.

use std::collections::{BTreeMap, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field as ArrowField, TimeUnit};

use crate::draw::lengths::MAX_ELEMENTS;
use crate::error::{Error, Result};
use crate::infer::relations::Column;
use crate::infer::sample::cells::Cells;
use crate::infer::sample::leaf_sample::LeafSample;
use crate::infer::sample::stored::Stored;
use crate::spec::dataset::{ListStyle, MAX_DEPTH};

/// A field with the statistics of its sample.
#[derive(Debug)]
pub(crate) struct Inferred {
    pub name: String,
    pub nullable: bool,
    pub kind: InferredKind,
    pub slots: u64,
    pub nulls: u64,
    /// For fields of the record: whether each sampled row has a value.
    pub there: Option<Vec<bool>>,
    /// The share of nulls of all rows.
    pub null_share: Option<f64>,
    /// The least and the greatest values of the row groups.
    pub bounds: Option<LeafSample>,
    /// For leaves outside of lists: the values of some rows, by which pairs are compared.
    pub cells: Option<Cells>,
}

#[derive(Debug)]
pub(crate) enum InferredKind {
    Leaf {
        kind: DataType,
        stored: Stored,
        values: LeafSample,
        unfit: u64,
    },
    Struct(Vec<Inferred>),
    /// A list of an `element`, or a map of a `key` and a `value`.
    List {
        style: ListStyle,
        children: Vec<Inferred>,
        lengths: BTreeMap<u32, u64>,
    },
}

/// The field of a column without values yet, or why a spec cannot represent it.
pub(crate) fn inferred(field: &ArrowField) -> Result<Inferred, String> {
    inferred_at(field, 1)
}

fn inferred_at(field: &ArrowField, depth: usize) -> Result<Inferred, String> {
    if depth > MAX_DEPTH {
        return Err(format!("nested more than {MAX_DEPTH} levels deep"));
    }
    let name = field.name();
    if name.is_empty() || name.contains(['.', '\0']) {
        return Err(format!("the name {name:?} is empty, or has a dot"));
    }
    let child = |f: &ArrowField| inferred_at(f, depth + 1);
    // The format names the fields inside of lists and maps.
    let named = |f: &ArrowField, name: &str| inferred_at(&f.clone().with_name(name), depth + 1);
    let list = |style: ListStyle, f: &ArrowField| -> Result<InferredKind, String> {
        Ok(InferredKind::List { style, children: vec![named(f, "element")?], lengths: BTreeMap::new() })
    };
    let kind = match field.data_type() {
        DataType::Struct(fields) => {
            if fields.is_empty() {
                return Err("a struct without fields".to_owned());
            }
            let mut names = HashSet::new();
            if !fields.iter().all(|f| names.insert(f.name())) {
                return Err("two of its fields have the same name".to_owned());
            }
            InferredKind::Struct(fields.iter().map(|f| child(f)).collect::<Result<_, _>>()?)
        }
        DataType::List(f) | DataType::LargeList(f) | DataType::ListView(f) | DataType::LargeListView(f) => {
            list(ListStyle::Standard, f)?
        }
        DataType::FixedSizeList(f, n) => list(ListStyle::Fixed(*n as u32), f)?,
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let (key, value) = (named(&fields[0], "key")?, named(&fields[1], "value")?);
                if !matches!(key.kind, InferredKind::Leaf { .. }) {
                    return Err("a map whose keys are nested".to_owned());
                }
                // Keys are never null, whatever their field says.
                let children = vec![Inferred { nullable: false, ..key }, value];
                InferredKind::List { style: ListStyle::Map, children, lengths: BTreeMap::new() }
            }
            _ => return Err("a map without key and value".to_owned()),
        },
        kind => {
            let (stored, kind) = Stored::new(field, leaf_kind(kind)?);
            InferredKind::Leaf { values: LeafSample::new(&kind), kind, stored, unfit: 0 }
        }
    };
    Ok(Inferred {
        name: name.clone(),
        nullable: field.is_nullable(),
        kind,
        slots: 0,
        nulls: 0,
        there: None,
        null_share: None,
        bounds: None,
        cells: None,
    })
}

/// The type of the arrays to sample: the value type for dictionaries and views.
pub(crate) fn leaf_kind(kind: &DataType) -> Result<DataType, String> {
    Ok(match kind {
        DataType::Dictionary(_, values) => leaf_kind(values)?,
        DataType::RunEndEncoded(_, values) => leaf_kind(values.data_type())?,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) if *s >= 0 => {
            DataType::Decimal128(*p, *s)
        }
        DataType::Decimal256(p, s) if *s >= 0 => DataType::Decimal256(*p, *s),
        // Parquet does not support seconds as a unit.
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(_) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        DataType::Duration(TimeUnit::Second) => DataType::Duration(TimeUnit::Millisecond),
        kind if kind.is_integer() || kind.is_floating() => kind.clone(),
        DataType::Boolean
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::FixedSizeBinary(_) => kind.clone(),
        other => return Err(format!("a spec has no type for {other}")),
    })
}

pub(crate) fn cast(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
    if array.data_type() == kind {
        return Ok(array.clone());
    }
    arrow_cast::cast(array, kind)
        .map_err(|error| Error::spec(error.to_string(), "the sample", "remove the column"))
}

impl Inferred {
    /// Lets the first `left` leaves outside of lists keep the values of some rows.
    pub(crate) fn keep_cells(&mut self, left: &mut usize) {
        match &mut self.kind {
            InferredKind::Struct(fields) => fields.iter_mut().for_each(|field| field.keep_cells(left)),
            InferredKind::Leaf { .. } if *left > 0 => {
                *left -= 1;
                self.cells = Some(Cells::default());
            }
            _ => {}
        }
    }

    /// Removes the values of the rows that do not stay.
    pub(crate) fn thin_cells(&mut self, stays: &[bool]) {
        match &mut self.kind {
            InferredKind::Struct(fields) => fields.iter_mut().for_each(|field| field.thin_cells(stays)),
            _ => self.cells.iter_mut().for_each(|cells| cells.retain(stays)),
        }
    }

    /// Samples the slots of an array, or only those in `wanted`. The values of rows at the places `chosen` are kept.
    pub(crate) fn add(&mut self, array: &ArrayRef, wanted: Option<&[bool]>, chosen: &[usize]) -> Result<()> {
        let is_wanted = |i: usize| wanted.is_none_or(|w| w[i]);
        // In dictionaries, values can be null, too.
        let logical = array.logical_nulls();
        let is_null = |i: usize| logical.as_ref().is_some_and(|nulls| nulls.is_null(i));
        let there: Vec<bool> = (0..array.len()).map(|i| is_wanted(i) && !is_null(i)).collect();
        let slots = wanted.map_or(array.len(), |wanted| wanted.iter().filter(|wanted| **wanted).count());
        self.slots += slots as u64;
        self.nulls += (slots - there.iter().filter(|there| **there).count()) as u64;
        match &mut self.kind {
            InferredKind::Struct(fields) => add_all(fields, array.as_struct().columns(), &there, chosen)?,
            InferredKind::List { style: ListStyle::Map, children, lengths } => {
                let map = array.as_map();
                let wanted = elements(map.value_offsets(), &there, map.entries().len(), lengths);
                add_all(children, map.entries().columns(), &wanted, &[])?;
            }
            InferredKind::List { children, lengths, .. } => {
                let field = match array.data_type() {
                    DataType::List(f)
                    | DataType::LargeList(f)
                    | DataType::ListView(f)
                    | DataType::LargeListView(f)
                    | DataType::FixedSizeList(f, _) => f.clone(),
                    _ => return Ok(()),
                };
                let array = cast(array, &DataType::List(field))?;
                let list = array.as_list::<i32>();
                let wanted = elements(list.value_offsets(), &there, list.values().len(), lengths);
                add_all(children, std::slice::from_ref(list.values()), &wanted, &[])?;
            }
            InferredKind::Leaf { kind, values, unfit, .. } => {
                let array = cast(array, kind)?;
                *unfit += values.add(&array, &there);
                self.cells.iter_mut().for_each(|cells| cells.add(&array, &there, chosen));
            }
        }
        if let Some(all) = &mut self.there {
            all.extend(there);
        }
        Ok(())
    }

    /// The fields of a struct, the element of a list, or the key and the value of a map.
    pub(crate) fn children(&self) -> &[Inferred] {
        match &self.kind {
            InferredKind::Leaf { .. } => &[],
            InferredKind::Struct(children) | InferredKind::List { children, .. } => children,
        }
    }

    /// Whether values may be functions of their rows, or walks: then most differ.
    pub(crate) fn may_follow_rows(&self) -> bool {
        match &self.kind {
            InferredKind::Leaf { values: LeafSample::Whole(values), .. } => {
                values.numbered().is_none_or(|all| all.distinct.len() * 2 > values.len())
            }
            InferredKind::Leaf { values: LeafSample::Wide(_), .. } => true,
            _ => false,
        }
    }

    pub(crate) fn nulls_share(&self) -> f64 {
        if self.slots > 0 { self.nulls as f64 / self.slots as f64 } else { 0.0 }
    }

    /// Its values by row, for relations to other columns.
    pub(crate) fn column(&self) -> Column<'_> {
        let leaf = match &self.kind {
            InferredKind::Leaf { kind, values, .. } => Some((kind, values)),
            _ => None,
        };
        let there = self.there.as_deref().unwrap_or_default();
        Column { name: &self.name, nullable: self.nullable, there, leaf }
    }

    /// Why a spec cannot represent the sampled values; `elements` counts the elements of enclosing lists.
    pub(crate) fn unfit(&self, elements: u64) -> Option<String> {
        match &self.kind {
            InferredKind::Leaf { unfit: 0, .. } => None,
            InferredKind::Leaf { unfit, .. } => Some(format!("{unfit} decimals of more than 38 digits")),
            InferredKind::Struct(fields) => fields.iter().find_map(|field| field.unfit(elements)),
            InferredKind::List { children, lengths, .. } => {
                let longest = lengths.last_key_value().map_or(1, |(n, _)| u64::from(*n).max(1));
                if elements.saturating_mul(longest) > MAX_ELEMENTS.into() {
                    return Some(format!("lists of more than {MAX_ELEMENTS} elements in one record"));
                }
                children.iter().find_map(|field| field.unfit(elements * longest))
            }
        }
    }
}

/// Samples the `wanted` slots of the columns of some fields.
fn add_all(fields: &mut [Inferred], columns: &[ArrayRef], wanted: &[bool], chosen: &[usize]) -> Result<()> {
    fields.iter_mut().zip(columns).try_for_each(|(field, column)| field.add(column, Some(wanted), chosen))
}

/// Counts the lengths of lists that are not null, and returns which elements belong to them.
fn elements(offsets: &[i32], there: &[bool], n: usize, lengths: &mut BTreeMap<u32, u64>) -> Vec<bool> {
    let mut wanted = vec![false; n];
    for (pair, there) in offsets.windows(2).zip(there) {
        let range = pair[0] as usize..pair[1] as usize;
        if *there {
            *lengths.entry(range.len() as u32).or_default() += 1;
            wanted[range].fill(true);
        }
    }
    wanted
}
