//! Weights that depend on the value of another field: the language of a person by country.

use std::cmp::Ordering;

use crate::draw::choice::{Dictionary, Listed, bad_weights, listed_weights, ordered};
use crate::draw::expression::{Operand, Values};
use crate::draw::value_spec::reader::Surroundings;
use crate::draw::value_spec::{ChosenBy, ValueSpec};
use crate::error::Result;
use crate::random::weights::Weights;
use crate::shred::leaf_draws::Draws;
use crate::spec_file::toml_reader::SpecNode;
use crate::types::literal::{Literal, entry};
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, stored_number};

/// The most weights of one field, over all of its tables.
const MAX_WEIGHTS: usize = 1 << 22;

/// The tables of weights, and which of them a value of the other field chooses.
#[derive(Debug)]
pub(crate) struct WeightsBy {
    /// The other field.
    pub operand: [Operand; 1],
    /// Its name in the spec.
    pub field: String,
    keys: Keys,
    /// A table for each key, then the one for all other values.
    tables: Vec<Table>,
}

/// The weights of one key.
#[derive(Debug)]
enum Table {
    /// The number of the only value: one column is often a function of another.
    Only(u32),
    Weights(Weights),
}

impl Table {
    #[inline(always)]
    fn pick(&self, draw: u64) -> u32 {
        match self {
            Table::Only(value) => *value,
            Table::Weights(weights) => weights.pick_fine(draw),
        }
    }

    /// Adds the probability of each value.
    fn add_to(&self, every: &mut [f64]) {
        match self {
            Table::Only(value) => every.iter_mut().skip(*value as usize).take(1).for_each(|sum| *sum += 1.0),
            Table::Weights(weights) => {
                every.iter_mut().zip(weights.probabilities()).for_each(|(sum, p)| *sum += p);
            }
        }
    }
}

/// The values that have tables of their own in ascending order, each with the number of its table.
#[derive(Debug)]
enum Keys {
    Texts(Vec<(Vec<u8>, usize)>),
    Numbers(Vec<(Number, usize)>),
}

impl WeightsBy {
    /// Appends an index into the dictionary for each value.
    pub(crate) fn draw(&self, draws: &Draws<'_>, out: &mut Vec<u32>) {
        let Some(values) = draws.operands.first() else { return out.resize(out.len() + draws.n, 0) };
        out.reserve(draws.n);
        for i in 0..draws.n {
            let table = self.tables.get(self.table(values, i)).or(self.tables.last());
            let draw = draws.stream.draw(i as u64);
            out.push(table.map_or(0, |table| table.pick(draw)));
        }
    }

    /// The number of the table for value `i` of the other field.
    fn table(&self, values: &Values, i: usize) -> usize {
        let found = match (&self.keys, values) {
            (Keys::Texts(keys), Values::Texts(texts)) => {
                let text = texts.get(i);
                keys.binary_search_by(|(key, _)| key.as_slice().cmp(text))
                    .ok()
                    .and_then(|at| keys.get(at))
                    .map(|(_, table)| *table)
            }
            (Keys::Numbers(keys), Values::Numbers(numbers)) => numbers.get(i).and_then(|number| {
                let at = keys.binary_search_by(|(key, _)| compared(*key, number)).ok()?;
                keys.get(at).map(|(_, table)| *table)
            }),
            _ => None,
        };
        found.unwrap_or(usize::MAX)
    }
}

fn compared(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
        // -0.0 is the value 0.0.
        (a, b) => (a.real() + 0.0).total_cmp(&(b.real() + 0.0)),
    }
}

/// `weights_by = { field = "NAME", given = { VALUE = { ... } }, otherwise = { ... } }`.
pub(crate) fn weights_by(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec> {
    let kind = around.kind;
    if *kind == LogicalType::Boolean {
        let advice = "write a condition: { expression = \"uniform(0, 1) < if(kind == 'A', 0.9, 0.1)\" }";
        return Err(node.error("weights_by of a boolean", advice));
    }
    let table = node.table("weights_by", &["field", "given", "otherwise"])?;
    let advice = "write the name of an earlier field";
    let field = table.read_needed(("field", "weights_by"), advice, SpecNode::string)?;
    let operand = (around.operand)(field)
        .map_err(|complaint| table.get("field").unwrap_or(node).complain(complaint))?;
    let given = table.need("given", "weights_by")?;
    let mut keys = Vec::new();
    let mut lists = Vec::new();
    let cases = given.any_table("`given`")?;
    for (key, weights) in cases.entries() {
        let number = lists.len();
        let read = key_of(&operand.kind, key).ok_or_else(|| {
            let what = format!("{key:?} is not {}, the type of {field}", operand.kind.a_name());
            cases.key_error(key, what, operand.kind.takes())
        })?;
        keys.push((read, number));
        lists.push((listed_weights(kind, weights)?, weights));
    }
    let otherwise = table.need("otherwise", "weights_by")?;
    lists.push((listed_weights(kind, otherwise)?, otherwise));
    let keys = sorted(keys, &operand.kind).map_err(|key| {
        given.error(format!("the value {key} of {field} is given twice"), "give each value once")
    })?;
    let (dictionary, tables) = tables(&lists)?;
    let mut every = vec![0.0; dictionary.entries.len()];
    tables.iter().for_each(|table| table.add_to(&mut every));
    let table = Weights::new(&every).map_err(|bad| bad_weights(&bad, node))?;
    let by = WeightsBy { operand: [operand], field: field.to_owned(), keys, tables };
    Ok(ValueSpec::Choice { table, dictionary, by: Some(Box::new(ChosenBy::Field(by))) })
}

/// A value of the other field, as its text or its number.
enum Key {
    Text(Vec<u8>),
    Number(Number),
}

fn key_of(kind: &LogicalType, key: &str) -> Option<Key> {
    let literal = Literal::of_key(kind, key);
    match (kind, &literal) {
        (LogicalType::Boolean, Literal::Boolean(value)) => {
            Some(Key::Number(Number::Whole(i128::from(*value))))
        }
        (LogicalType::Boolean, _) => None,
        (kind, _) if kind.is_text() => Some(Key::Text(key.as_bytes().to_vec())),
        // As the field stores it: a single-precision 0.1 is another number than a double one.
        (kind, literal) => stored_number(kind, &entry(kind, literal)?).map(Key::Number),
    }
}

/// The keys in order; the first that is there twice is returned as an error.
fn sorted(keys: Vec<(Key, usize)>, kind: &LogicalType) -> Result<Keys, String> {
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    for (key, table) in keys {
        match key {
            Key::Text(text) => texts.push((text, table)),
            Key::Number(number) => numbers.push((number, table)),
        }
    }
    if kind.is_text() {
        texts.sort();
        return Ok(Keys::Texts(texts));
    }
    numbers.sort_by(|(a, _), (b, _)| compared(*a, *b));
    let mut neighbours = numbers.iter().zip(numbers.iter().skip(1));
    match neighbours.find(|((a, _), (b, _))| compared(*a, *b) == Ordering::Equal) {
        Some(((twice, _), _)) => Err(twice.to_string()),
        None => Ok(Keys::Numbers(numbers)),
    }
}

/// The dictionary of all values, and for each list its table of weights over that.
fn tables(lists: &[(Vec<Listed>, SpecNode<'_>)]) -> Result<(Dictionary, Vec<Table>)> {
    let mut all: Vec<&Listed> = lists.iter().flat_map(|(list, _)| list).collect();
    all.sort_by(|a, b| ordered(a, b));
    all.dedup_by(|a, b| a.entry == b.entry);
    let mut tables = Vec::new();
    let with_weights = lists.iter().filter(|(list, _)| list.len() > 1).count();
    for (list, node) in lists {
        if let [only] = &list[..]
            && only.weight > 0.0
            && only.weight.is_finite()
        {
            let place = all.binary_search_by(|other| ordered(other, only)).unwrap_or(0);
            tables.push(Table::Only(place as u32));
            continue;
        }
        if all.len().saturating_mul(with_weights) > MAX_WEIGHTS {
            let what = format!("{} values in {with_weights} tables", all.len());
            return Err(node.error(what, format!("use at most {MAX_WEIGHTS} weights in all")));
        }
        let mut weights = vec![0.0; all.len()];
        for one in list {
            let place = all.binary_search_by(|other| ordered(other, one)).ok();
            if let Some(weight) = place.and_then(|place| weights.get_mut(place)) {
                *weight = one.weight;
            }
        }
        let weights = Weights::new(&weights).map_err(|bad| bad_weights(&bad, *node))?;
        tables.push(Table::Weights(weights));
    }
    Ok((Dictionary::new(all.into_iter()), tables))
}
