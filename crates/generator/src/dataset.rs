//! A validated dataset: the tree of its fields, each with the tables that its values are drawn
//! from.
//!
//! [`Dataset::from_toml`] is the only way in. Everything that later stages rely on (levels that
//! fit, tables that are distributions, a bounded number of elements a record) is checked here.

use crate::content_sum::ContentSum;
use crate::error::Error;
use crate::levels::Levels;
use crate::rng::purpose;
use crate::spec::{DatasetSpec, FieldSpec, LengthSpec, PresentSpec, TypeSpec};
use crate::values::Values;
use crate::weights::{BadWeights, Weights};

/// Most elements that the lists of one record may have together on one path. Bounds the memory of
/// a block of rows.
pub const MOST_ELEMENTS: u32 = 4096;

/// Deepest nesting of structs and lists.
pub const DEEPEST: usize = 32;

/// Specs that come with the crate, by name.
pub const BUILT_IN: &[(&str, &str)] = &[("contacts", include_str!("../datasets/contacts.toml"))];

/// A dataset whose records can be drawn.
#[derive(Debug)]
pub struct Dataset {
    name: String,
    pub(crate) fields: Vec<Field>,
    leaves: usize,
    spec_sum: ContentSum,
}

/// One node of the record's tree.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: String,
    /// Names from the root, joined with dots, as Parquet has the path of a leaf.
    pub path: String,
    pub nulls: Nulls,
    /// Levels of an entry in which this field is there.
    pub levels: Levels,
    pub kind: Kind,
    /// The streams that decide whether it is there, and that its values or lengths come from.
    pub null_draws: u64,
    pub value_draws: u64,
}

/// How often a field is null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nulls {
    /// The field is required.
    Never,
    /// Null with this probability.
    Share(f64),
    /// The struct around it decides: there if this bit of the combination drawn is set.
    Together(u32),
}

#[derive(Debug)]
pub(crate) enum Kind {
    Leaf(Leaf),
    Struct { fields: Vec<Field>, present: Option<Present> },
    List { lengths: Lengths, element: Box<Field> },
}

/// A column of the file.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// Its position among the columns.
    pub index: usize,
    pub kind: TypeSpec,
    pub values: Values,
    /// Most values it can have in one record.
    pub most_in_record: u64,
}

/// Which optional fields of a struct are there together.
#[derive(Debug)]
pub(crate) struct Present {
    pub table: Weights,
    /// For each combination the bits of the fields that are there.
    pub masks: Vec<u32>,
}

/// How many elements a list has.
#[derive(Debug)]
pub(crate) struct Lengths {
    pub table: Weights,
    /// For each index of the table the length, `None` for a null list.
    pub lengths: Vec<Option<u32>>,
    pub longest: u32,
}

impl Dataset {
    /// Parses and validates a dataset spec.
    ///
    /// # Errors
    /// With the line and column for what is no spec at all, with the path of the field for what is
    /// one but makes no dataset.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let spec: DatasetSpec = toml::from_str(text).map_err(|error| {
            let place = error.span().map_or_else(String::new, |span| {
                let before = &text[..span.start.min(text.len())];
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
                format!("line {line}, column {column}")
            });
            Error::spec(
                error.message().trim(),
                place,
                "see the dataset specs that `sawmill gen --print` shows",
            )
        })?;
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if spec.name.is_empty() || !spec.name.chars().all(named) {
            let what = format!("{:?} cannot be the stem of file names", spec.name);
            return Err(Error::spec(what, "name", "use letters, digits, - and _"));
        }
        let mut builder = Builder { leaves: 0 };
        let fields = builder.fields(spec.fields, "", Levels::default(), 1, 0, None)?;
        let spec_sum = ContentSum(xxhash_rust::xxh3::xxh3_128(text.as_bytes()));
        Ok(Dataset { name: spec.name, fields, leaves: builder.leaves, spec_sum })
    }

    /// The dataset of a built-in spec, `None` where there is none of that name.
    pub fn built_in(name: &str) -> Option<Result<Self, Error>> {
        BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, text)| Self::from_toml(text))
    }

    /// Its name, the stem of its files' names.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hash of the spec that it was made from.
    pub fn spec_sum(&self) -> ContentSum {
        self.spec_sum
    }

    /// The number of columns in its files.
    pub fn columns(&self) -> usize {
        self.leaves
    }

    /// Calls `see` with each leaf and the field it stands in, in the order of the columns.
    pub(crate) fn each_leaf<'a>(&'a self, see: &mut dyn FnMut(&'a Field, &'a Leaf)) {
        fn walk<'a>(fields: &'a [Field], see: &mut dyn FnMut(&'a Field, &'a Leaf)) {
            for field in fields {
                match &field.kind {
                    Kind::Leaf(leaf) => see(field, leaf),
                    Kind::Struct { fields, .. } => walk(fields, see),
                    Kind::List { element, .. } => walk(std::slice::from_ref(element), see),
                }
            }
        }
        walk(&self.fields, see);
    }
}

struct Builder {
    leaves: usize,
}

impl Builder {
    fn fields(
        &mut self,
        specs: Vec<FieldSpec>,
        parent: &str,
        levels: Levels,
        elements: u32,
        depth: usize,
        together: Option<&[String]>,
    ) -> Result<Vec<Field>, Error> {
        if specs.is_empty() {
            return Err(Error::spec("no fields", shown(parent), "give at least one field"));
        }
        let mut fields: Vec<Field> = Vec::with_capacity(specs.len());
        for spec in specs {
            let name = spec.name.clone().unwrap_or_default();
            if name.is_empty() || name.contains(['.', '\0']) {
                let what = format!("{name:?} is no name for a field");
                return Err(Error::spec(what, shown(parent), "give `name = \"...\"` without dots"));
            }
            if fields.iter().any(|f| f.name == name) {
                return Err(Error::spec(
                    format!("two fields are named {name:?}"),
                    shown(parent),
                    "rename one",
                ));
            }
            let bit = together.and_then(|names| names.iter().position(|n| *n == name));
            let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
            fields.push(self.field(spec, name, path, levels, elements, depth, bit)?);
        }
        Ok(fields)
    }

    #[allow(clippy::too_many_arguments, reason = "one recursive step takes the whole position in the tree")]
    fn field(
        &mut self,
        spec: FieldSpec,
        name: String,
        path: String,
        levels: Levels,
        elements: u32,
        depth: usize,
        together: Option<usize>,
    ) -> Result<Field, Error> {
        let place = shown(&path);
        if depth > DEEPEST {
            return Err(Error::spec(format!("nested more than {DEEPEST} deep"), place, "flatten the record"));
        }
        let nulls = match (spec.nulls, together) {
            (Some(_), Some(_)) => {
                return Err(Error::spec(
                    "`nulls` beside a `present` of the struct around it that names this field",
                    place,
                    "keep one of the two",
                ));
            }
            (None, Some(bit)) => Nulls::Together(bit as u32),
            (Some(p), None) if (0.0..=1.0).contains(&p) => Nulls::Share(p),
            (Some(p), None) => {
                return Err(Error::spec(
                    format!("`nulls = {p}` is no probability"),
                    place,
                    "give 0.0 to 1.0",
                ));
            }
            (None, None) => Nulls::Never,
        };
        let optional = u8::from(nulls != Nulls::Never);
        let mut levels = Levels { definition: levels.definition + optional, ..levels };
        let belongs = |there: bool, key: &str, of: &str| {
            if there && !of.split('|').any(|t| t == spec.kind.name()) {
                let what = format!("`{key}` on a field of type {}", spec.kind.name());
                let advice = format!("`{key}` belongs to {}", of.replace('|', " or "));
                return Err(Error::spec(what, shown(&path), advice));
            }
            Ok(())
        };
        belongs(spec.length.is_some(), "length", "list")?;
        belongs(spec.element.is_some(), "element", "list")?;
        belongs(spec.fields.is_some(), "fields", "struct")?;
        belongs(spec.present.is_some(), "present", "struct")?;
        if matches!(spec.kind, TypeSpec::List | TypeSpec::Struct) {
            belongs(spec.values.is_some(), "values", "leaves: any type but struct and list")?;
        }
        let needs = |key: &str| {
            let what = format!("a {} without `{key}`", spec.kind.name());
            Error::spec(what, shown(&path), format!("add `{key}`"))
        };
        let kind = match spec.kind {
            TypeSpec::Struct => {
                let (names, present) = match &spec.present {
                    None => (None, None),
                    Some(specs) => {
                        let (names, present) = present(specs, spec.fields.as_deref().unwrap_or(&[]), &path)?;
                        (Some(names), Some(present))
                    }
                };
                let fields = spec.fields.ok_or_else(|| needs("fields"))?;
                let fields = self.fields(fields, &path, levels, elements, depth + 1, names.as_deref())?;
                Kind::Struct { fields, present }
            }
            TypeSpec::List => {
                let length = spec.length.as_ref().ok_or_else(|| needs("length"))?;
                let lengths = lengths(length, nulls, &path)?;
                let elements = elements.saturating_mul(lengths.longest.max(1));
                if elements > MOST_ELEMENTS {
                    let what = format!("lists may hold {elements} elements in one record");
                    let advice = format!("shorten the lists to at most {MOST_ELEMENTS} on one path");
                    return Err(Error::spec(what, place, advice));
                }
                levels = Levels { definition: levels.definition + 1, repetition: levels.repetition + 1 };
                let element = *spec.element.ok_or_else(|| needs("element"))?;
                if element.name.is_some() {
                    return Err(Error::spec("`name` on the element of a list", place, "leave it out"));
                }
                // The standard three-level list of the format: list.element.
                let path = format!("{path}.list.element");
                let element =
                    self.field(element, "element".into(), path, levels, elements, depth + 1, None)?;
                Kind::List { lengths, element: Box::new(element) }
            }
            kind => {
                let values = spec.values.as_ref().ok_or_else(|| needs("values"))?;
                let values = Values::new(kind, values, &path)?;
                let index = self.leaves;
                self.leaves += 1;
                Kind::Leaf(Leaf { index, kind, values, most_in_record: elements.into() })
            }
        };
        let (null_draws, value_draws) = (purpose(&path, "null"), purpose(&path, "value"));
        Ok(Field { name, path, nulls, levels, kind, null_draws, value_draws })
    }
}

fn present(specs: &[PresentSpec], fields: &[FieldSpec], path: &str) -> Result<(Vec<String>, Present), Error> {
    let place = || format!("{}, `present`", shown(path));
    let mut names: Vec<String> = specs.iter().flat_map(|s| s.fields.iter().cloned()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > 32 {
        return Err(Error::spec("more than 32 fields", place(), "name fewer fields"));
    }
    if let Some(name) = names.iter().find(|n| !fields.iter().any(|f| f.name.as_ref() == Some(n))) {
        return Err(Error::spec(
            format!("there is no field {name:?}"),
            place(),
            "name fields of this struct",
        ));
    }
    let bit = |name: &String| names.iter().position(|n| n == name).map_or(0, |i| 1u32 << i);
    let masks = specs.iter().map(|s| s.fields.iter().map(bit).fold(0, |a, b| a | b)).collect();
    let weights: Vec<f64> = specs.iter().map(|s| s.weight).collect();
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, place()))?;
    Ok((names, Present { table, masks }))
}

fn lengths(spec: &LengthSpec, nulls: Nulls, path: &str) -> Result<Lengths, Error> {
    let place = || format!("{}, `length`", shown(path));
    let too_long = || Error::spec("a list that is too long", place(), format!("at most {MOST_ELEMENTS}"));
    let weighted: Vec<(u32, f64)> = match spec {
        LengthSpec::Constant(n) => vec![(*n, 1.0)],
        LengthSpec::Uniform { min, max } if min > max => {
            return Err(Error::spec(format!("min {min} above max {max}"), place(), "swap them"));
        }
        LengthSpec::Uniform { max: n, .. } | LengthSpec::Zipf { n, .. } if *n > MOST_ELEMENTS => {
            return Err(too_long());
        }
        LengthSpec::Uniform { min, max } => (*min..=*max).map(|n| (n, 1.0)).collect(),
        LengthSpec::Zipf { n, s } => (1..=*n).map(|k| (k, f64::from(k).powf(-s))).collect(),
        LengthSpec::Weights(weights) => weights
            .iter()
            .map(|(length, weight)| match length.parse() {
                Ok(length) => Ok((length, *weight)),
                Err(_) => {
                    let what = format!("{length:?} is no length of a list");
                    Err(Error::spec(what, place(), "use whole numbers as keys: { 1 = 45, 2 = 10 }"))
                }
            })
            .collect::<Result<_, _>>()?,
    };
    let longest = weighted.iter().map(|(n, _)| *n).max().unwrap_or(0);
    if longest > MOST_ELEMENTS {
        return Err(too_long());
    }
    let weights: Vec<f64> = weighted.iter().map(|(_, w)| *w).collect();
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, place()))?;
    let mut lengths: Vec<Option<u32>> = weighted.iter().map(|(n, _)| Some(*n)).collect();
    // Null and length are one draw: the lengths share what null leaves.
    let Nulls::Share(null) = nulls else { return Ok(Lengths { table, lengths, longest }) };
    let mut weights: Vec<f64> = table.probabilities().iter().map(|p| p * (1.0 - null)).collect();
    weights.push(null);
    lengths.push(None);
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, place()))?;
    Ok(Lengths { table, lengths, longest })
}

pub(crate) fn bad_weights(bad: &BadWeights, place: String) -> Error {
    let what = match bad {
        BadWeights::Empty => "no choice at all".to_owned(),
        BadWeights::NotAWeight(i) => format!("weight {} is negative or not a number", i + 1),
        BadWeights::AllZero => "the weights sum to zero".to_owned(),
    };
    Error::spec(what, place, "give weights of 0 or more, at least one of them above 0")
}

fn shown(path: &str) -> String {
    if path.is_empty() { "the record".to_owned() } else { format!("field {path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_specs_are_valid() {
        for (name, _) in BUILT_IN {
            let dataset = Dataset::built_in(name).unwrap().unwrap();
            assert_eq!(dataset.name(), *name);
        }
        assert!(Dataset::built_in("nothing").is_none());
    }

    #[test]
    fn contacts_has_three_columns_with_the_levels_of_an_optional_list_of_structs() {
        let dataset = Dataset::built_in("contacts").unwrap().unwrap();
        let mut seen = Vec::new();
        dataset.each_leaf(&mut |field, leaf| {
            seen.push((leaf.index, field.path.clone(), field.levels.definition, field.levels.repetition));
        });
        assert_eq!(
            seen,
            [
                (0, "name".to_owned(), 1, 0),
                (1, "phones.list.element.number".to_owned(), 3, 1),
                (2, "phones.list.element.phone_type".to_owned(), 3, 1),
            ]
        );
    }

    #[test]
    fn a_wrong_spec_is_refused_with_its_place_and_what_is_wrong() {
        let field = |rest: &str| format!("name = \"d\"\n[[fields]]\nname = \"f\"\n{rest}");
        let cases = [
            ("name = ".to_owned(), "line 1, column 8"),
            ("name = \"d\"\nfields = []".to_owned(), "no fields"),
            ("name = \"a/b\"\nfields = []".to_owned(), "stem of file names"),
            (field("type = \"int32\"\ncolour = 1"), "line 5, column 1 "),
            (field("type = \"int31\""), "line 4, column 8"),
            (field("type = \"int32\""), "field f - add `values`"),
            (field("type = \"int32\"\nvalues = \"person_name\""), "person_name makes strings"),
            (field("type = \"int32\"\nnulls = 1.5\nvalues = { constant = 1 }"), "no probability"),
            (field("type = \"int32\"\nvalues = { constant = 3000000000 }"), "no int32"),
            (field("type = \"int32\"\nvalues = { uniform = { min = 2, max = 1 } }"), "above"),
            (field("type = \"string\"\nvalues = { unique = \"x\" }"), "needs {id}"),
            (field("type = \"string\"\nvalues = { weights = { } }"), "no choice"),
            (field("type = \"list\"\nvalues = \"person_name\""), "`values` on a field of type list"),
            (field("type = \"list\"\nlength = { constant = 1 }"), "add `element`"),
            (field("type = \"list\"\nlength = { weights = { x = 1 } }"), "no length"),
            (
                field("type = \"struct\"\npresent = [{ fields = [\"x\"], weight = 1 }]\nfields = []"),
                "there is no field \"x\"",
            ),
        ];
        for (spec, expected) in cases {
            let error = Dataset::from_toml(&spec).unwrap_err().to_string();
            assert!(format!("{error} ").contains(expected), "{spec}\n=> {error}");
        }
    }
}
