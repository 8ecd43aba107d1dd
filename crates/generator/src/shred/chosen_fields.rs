//! Which fields of the record are drawn. The values of a field are a function of the seed and its own path, so
//! that other fields can be left out, unless an expression reads them.

use crate::spec::dataset::{Dataset, Field};

/// The fields of the record that a shredder draws, each with its nested fields.
#[derive(Debug)]
pub(crate) struct ChosenFields {
    /// For each field of the record, hidden ones last, whether it is drawn.
    fields: Vec<bool>,
    /// For each leaf, whether it is drawn.
    leaves: Vec<bool>,
}

impl ChosenFields {
    pub(crate) fn all(dataset: &Dataset) -> Self {
        let mut leaves = Vec::new();
        dataset.each_leaf(&mut |_, _| leaves.push(true));
        Self { fields: vec![true; dataset.order.len()], leaves }
    }

    /// The fields at `places`, and those that their expressions read, directly or through others.
    pub(crate) fn new(dataset: &Dataset, places: &[usize]) -> Self {
        let all: Vec<&Field> = dataset.fields.iter().chain(&dataset.hidden).collect();
        let mut owners = Vec::new();
        for (place, field) in all.iter().enumerate() {
            field.each_leaf(&mut |_, _| owners.push(place));
        }
        let mut fields = vec![false; all.len()];
        let mut open = places.to_vec();
        while let Some(place) = open.pop() {
            if !std::mem::replace(&mut fields[place], true) {
                all[place].each_operand(&mut |operand| open.push(owners[operand.leaf]));
            }
        }
        let leaves = owners.iter().map(|place| fields[*place]).collect();
        Self { fields, leaves }
    }

    /// The field of the record with the leaf `index`, and those that it needs.
    pub(crate) fn of_leaf(dataset: &Dataset, index: usize) -> Self {
        let mut places = Vec::new();
        for (place, field) in dataset.drawn_fields() {
            field.each_leaf(&mut |_, leaf| {
                if leaf.index == index {
                    places.push(place);
                }
            });
        }
        Self::new(dataset, &places)
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
