//! Which fields of the record are drawn. The values of a field are a function of the seed and its own path, so
//! that other fields can be left out, unless an expression reads them.

#[cfg(feature = "arrow")]
use crate::spec::dataset::Leaf;
use crate::spec::dataset::{Dataset, Field, Kind};

/// The fields of the record that a shredder draws, each with its nested fields.
#[derive(Debug)]
pub(crate) struct ChosenFields {
    /// For each field of the record, whether it is drawn.
    fields: Vec<bool>,
    /// For each leaf, whether it is drawn.
    leaves: Vec<bool>,
}

impl ChosenFields {
    /// All fields of `dataset`.
    pub(crate) fn all(dataset: &Dataset) -> Self {
        Self { fields: vec![true; dataset.fields.len()], leaves: vec![true; dataset.columns()] }
    }

    /// The fields at `places`, and those that their expressions read, directly or through others.
    #[cfg(feature = "arrow")]
    pub(crate) fn new(dataset: &Dataset, places: &[usize]) -> Self {
        let mut owners = vec![0; dataset.columns()];
        for (place, field) in dataset.fields.iter().enumerate() {
            each_leaf_of(field, &mut |leaf| owners[leaf.index] = place);
        }
        let mut fields = vec![false; dataset.fields.len()];
        let mut leaves = vec![false; dataset.columns()];
        let mut open = places.to_vec();
        while let Some(place) = open.pop() {
            if std::mem::replace(&mut fields[place], true) {
                continue;
            }
            each_leaf_of(&dataset.fields[place], &mut |leaf| {
                leaves[leaf.index] = true;
                open.extend(leaf.values.operands().iter().map(|operand| owners[operand.leaf]));
            });
        }
        Self { fields, leaves }
    }

    /// Whether the field of the record at `place` is drawn.
    pub(crate) fn draws(&self, place: usize) -> bool {
        self.fields[place]
    }

    /// Whether the leaf `index` is drawn.
    pub(crate) fn draws_leaf(&self, index: usize) -> bool {
        self.leaves[index]
    }
}

/// Calls `visit` with each leaf of `field`.
#[cfg(feature = "arrow")]
fn each_leaf_of<'a>(field: &'a Field, visit: &mut dyn FnMut(&'a Leaf)) {
    match &field.kind {
        Kind::Leaf(leaf) => visit(leaf),
        Kind::Struct { fields, .. } | Kind::List { children: fields, .. } => {
            for field in fields {
                each_leaf_of(field, visit);
            }
        }
    }
}

/// The number of lists in `field`.
pub(crate) fn lists_in(field: &Field) -> usize {
    match &field.kind {
        Kind::Leaf(_) => 0,
        Kind::Struct { fields, .. } => fields.iter().map(lists_in).sum(),
        Kind::List { children, .. } => 1 + children.iter().map(lists_in).sum::<usize>(),
    }
}
