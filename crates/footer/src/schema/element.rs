//! An element of a schema: a view of one node of the arena.

use std::fmt;

use crate::schema::arena::{
    CONVERTED_TYPE, ElementTraits, FIELD_ID, LOGICAL_TYPE, NUM_CHILDREN, Node, PHYSICAL_TYPE, PRECISION,
    REPETITION, SCALE, Schema, TYPE_LENGTH,
};
use crate::schema::enums::{ConvertedType, PhysicalType, Repetition};
use crate::schema::logical::LogicalType;

/// An element of a [`Schema`]: the root, a group or a leaf.
///
/// Accessors cost a few loads unless their description says more.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) index: usize,
}

impl<'a> Element<'a> {
    fn node(&self) -> &'a Node {
        // Every `Element` is created with an index below the number of nodes.
        &self.schema.nodes[self.index]
    }

    pub(crate) fn traits(&self) -> &'a ElementTraits {
        // Every node's traits are in this list.
        &self.schema.traits[self.node().traits as usize]
    }

    fn has<T>(&self, bit: u16, value: T) -> Option<T> {
        (self.traits().present & bit != 0).then_some(value)
    }

    /// The element's place in depth-first order.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The element's own name.
    pub fn name(&self) -> &'a str {
        let node = self.node();
        let start = node.name_start as usize;
        // The range was stored when the name was pushed to `names`.
        &self.schema.names[start..start + node.name_len as usize]
    }

    /// The names from below the root down to the element.
    ///
    /// Costs a walk up to the root and an allocation.
    pub fn path_names(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        let mut at = *self;
        while let Some(parent) = at.parent() {
            names.push(at.name());
            at = parent;
        }
        names.reverse();
        names
    }

    /// The names from below the root down to the element, joined by dots.
    ///
    /// Costs a walk up to the root and an allocation.
    pub fn path(&self) -> String {
        self.path_names().join(".")
    }

    /// The parent group; `None` for the root.
    pub fn parent(&self) -> Option<Element<'a>> {
        (self.index > 0).then(|| Element { schema: self.schema, index: self.node().parent as usize })
    }

    /// The ancestor directly below the root, or the element itself if it is that.
    ///
    /// Costs a walk up to the root.
    pub fn top(&self) -> Element<'a> {
        let mut at = *self;
        while let Some(parent) = at.parent() {
            if parent.index == 0 {
                break;
            }
            at = parent;
        }
        at
    }

    /// The children of this element.
    pub fn children(&self) -> impl Iterator<Item = Element<'a>> + use<'a> {
        let schema = self.schema;
        let end = self.node().end as usize;
        let mut at = self.index + 1;
        std::iter::from_fn(move || {
            let child = (at < end).then_some(Element { schema, index: at })?;
            at = child.node().end as usize;
            Some(child)
        })
    }

    /// The columns below this element; for a leaf, its own column.
    pub fn columns(&self) -> std::ops::Range<usize> {
        let end = self.node().end as usize;
        let after = self.schema.nodes.get(end).map_or(self.schema.leaves.len(), |node| node.leaf as usize);
        self.node().leaf as usize..after
    }

    /// Whether the element is a leaf: a column, not a group.
    pub fn is_leaf(&self) -> bool {
        self.index > 0 && self.traits().num_children == 0 && self.traits().present & PHYSICAL_TYPE != 0
    }

    /// The column index of a leaf.
    pub fn column(&self) -> Option<usize> {
        self.is_leaf().then(|| self.node().leaf as usize)
    }

    /// The physical type; `None` for groups.
    pub fn physical_type(&self) -> Option<PhysicalType> {
        self.has(PHYSICAL_TYPE, PhysicalType::from_number(self.traits().physical_type))
    }

    /// The length of `FIXED_LEN_BYTE_ARRAY` values in bytes; meaningless for other types.
    pub fn type_length(&self) -> Option<i32> {
        self.has(TYPE_LENGTH, self.traits().type_length)
    }

    /// How often the element occurs in its parent; the root may have no repetition.
    pub fn repetition(&self) -> Option<Repetition> {
        self.has(REPETITION, Repetition::from_number(self.traits().repetition))
    }

    /// The number of children as the file states it.
    pub fn num_children(&self) -> Option<u32> {
        self.has(NUM_CHILDREN, self.traits().num_children)
    }

    /// The annotation that logical types superseded.
    pub fn converted_type(&self) -> Option<ConvertedType> {
        self.has(CONVERTED_TYPE, ConvertedType::from_number(self.traits().converted_type))
    }

    /// The scale of a `DECIMAL` converted type.
    pub fn scale(&self) -> Option<i32> {
        self.has(SCALE, self.traits().scale)
    }

    /// The precision of a `DECIMAL` converted type.
    pub fn precision(&self) -> Option<i32> {
        self.has(PRECISION, self.traits().precision)
    }

    /// The field id from the original schema.
    pub fn field_id(&self) -> Option<i32> {
        self.has(FIELD_ID, self.traits().field_id)
    }

    /// What the values mean.
    pub fn logical_type(&self) -> Option<&'a LogicalType> {
        if self.traits().present & LOGICAL_TYPE == 0 {
            return None;
        }
        self.schema.logical_types.get(self.traits().logical_type as usize)
    }

    /// The maximum definition level.
    pub fn max_def(&self) -> u32 {
        self.node().max_def
    }

    /// The maximum repetition level.
    pub fn max_rep(&self) -> u32 {
        self.node().max_rep
    }
}

impl fmt::Debug for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Element")
            .field("name", &self.name())
            .field("repetition", &self.repetition())
            .field("physical_type", &self.physical_type())
            .field("type_length", &self.type_length())
            .field("num_children", &self.num_children())
            .field("converted_type", &self.converted_type())
            .field("logical_type", &self.logical_type())
            .field("field_id", &self.field_id())
            .finish()
    }
}
