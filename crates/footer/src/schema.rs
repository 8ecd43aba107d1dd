//! The schema: all its elements in one arena, in the depth-first order of the file.
//!
//! The list of elements in the footer becomes a row of nodes; one pass over them with a stack of open
//! groups (never a recursion: a schema may be 100,000 deep) finds parents, subtree ends, leaves and
//! their levels.

use std::fmt;

use crate::enums::{ConvertedType, PhysicalType, Repetition};
use crate::error::{Fault, FaultKind};
use crate::logical::{self, LogicalType};
use crate::thrift::{BINARY, Cursor, I32, STOP, STRUCT, Step};

/// A file's schema.
#[derive(Clone, PartialEq, Eq)]
pub struct Schema {
    nodes: Vec<Node>,
    names: String,
    logical_types: Vec<LogicalType>,
    /// The element of every leaf, in the order of the columns.
    leaves: Vec<u32>,
}

#[derive(Clone, PartialEq, Eq)]
struct Node {
    name_start: u32,
    name_len: u32,
    parent: u32,
    /// One past the last element below this one.
    end: u32,
    /// The number of leaves before this element.
    leaf: u32,
    num_children: u32,
    physical_type: i32,
    type_length: i32,
    scale: i32,
    precision: i32,
    field_id: i32,
    repetition: i32,
    converted_type: i32,
    /// Index into `logical_types`.
    logical_type: u32,
    max_def: u32,
    max_rep: u32,
    present: u16,
}

const PHYSICAL_TYPE: u16 = 1 << 0;
const TYPE_LENGTH: u16 = 1 << 1;
const REPETITION: u16 = 1 << 2;
const NUM_CHILDREN: u16 = 1 << 3;
const CONVERTED_TYPE: u16 = 1 << 4;
const SCALE: u16 = 1 << 5;
const PRECISION: u16 = 1 << 6;
const FIELD_ID: u16 = 1 << 7;
const LOGICAL_TYPE: u16 = 1 << 8;
const NAME: u16 = 1 << 9;

/// The smallest schema element: a header, a length of 0 and a stop.
const SMALLEST_ELEMENT: usize = 3;

/// The bytes of an element as writers make them; room for more than that is only made as they come.
const USUAL_ELEMENT: usize = 12;

impl Schema {
    /// Decodes the list of elements at the cursor.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Step<Self> {
        let start = cursor.at;
        let count = cursor.list_of(STRUCT, "a list of schema elements")?;
        let fits = cursor.left() / SMALLEST_ELEMENT;
        if count > fits {
            let kind = FaultKind::Count { count: count as u64, left: cursor.left() as u64 };
            return Err(Fault::new(start, kind));
        }
        let mut schema = Self {
            nodes: Vec::with_capacity(count.min(cursor.left() / USUAL_ELEMENT + 1)),
            names: String::new(),
            logical_types: Vec::new(),
            leaves: Vec::new(),
        };
        for _ in 0..count {
            let node = schema.read_element(cursor)?;
            schema.nodes.push(node);
        }
        schema.link(start)?;
        Ok(schema)
    }

    fn read_element(&mut self, cursor: &mut Cursor<'_>) -> Step<Node> {
        let start = cursor.at;
        let mut node = Node::empty();
        let mut last = 0;
        loop {
            let field = cursor.field(&mut last)?;
            let bit = match (field.id, field.wire) {
                (_, STOP) => break,
                (1, I32) => {
                    node.physical_type = cursor.i32()?;
                    PHYSICAL_TYPE
                }
                (2, I32) => {
                    node.type_length = cursor.i32()?;
                    TYPE_LENGTH
                }
                (3, I32) => {
                    node.repetition = cursor.i32()?;
                    REPETITION
                }
                (4, BINARY) => {
                    let name = cursor.text()?;
                    // Names are part of the footer, whose length has 32 bits.
                    node.name_start = self.names.len() as u32;
                    node.name_len = name.len() as u32;
                    self.names.push_str(name);
                    NAME
                }
                (4, found) => {
                    return Err(Fault::new(
                        cursor.at,
                        FaultKind::Wire { found, expected: "a name (binary)" },
                    ));
                }
                (5, I32) => {
                    let at = cursor.at;
                    let value = cursor.i32()?;
                    node.num_children = u32::try_from(value).map_err(|_| {
                        let expected = "a number of children that is not negative";
                        Fault::new(at, FaultKind::Range { value: value.into(), expected })
                    })?;
                    NUM_CHILDREN
                }
                (6, I32) => {
                    node.converted_type = cursor.i32()?;
                    CONVERTED_TYPE
                }
                (7, I32) => {
                    node.scale = cursor.i32()?;
                    SCALE
                }
                (8, I32) => {
                    node.precision = cursor.i32()?;
                    PRECISION
                }
                (9, I32) => {
                    node.field_id = cursor.i32()?;
                    FIELD_ID
                }
                (10, STRUCT) => {
                    let logical = logical::read(cursor)?;
                    // Neighbours are often alike: keep one of a run.
                    if self.logical_types.last() != Some(&logical) {
                        self.logical_types.push(logical);
                    }
                    node.logical_type = self.logical_types.len() as u32 - 1;
                    LOGICAL_TYPE
                }
                (_, wire) => {
                    cursor.skip(wire)?;
                    0
                }
            };
            node.present |= bit;
        }
        if node.present & NAME == 0 {
            return Err(Fault::new(start, FaultKind::Missing { field: "name" }));
        }
        if node.present & REPETITION == 0 && !self.nodes.is_empty() {
            return Err(Fault::new(start, FaultKind::Missing { field: "repetition_type" }));
        }
        Ok(node)
    }

    /// Finds parents, subtree ends, leaves and levels; `start` is where the list stands.
    fn link(&mut self, start: usize) -> Step<()> {
        let count = self.nodes.len();
        // Groups that still await children: (element, children to come).
        let mut open: Vec<(u32, u32)> = Vec::new();
        for at in 0..count {
            while let Some(&(group, 0)) = open.last() {
                self.nodes[group as usize].end = at as u32;
                open.pop();
            }
            let (parent, def, rep) = match open.last_mut() {
                Some((parent, to_come)) => {
                    *to_come -= 1;
                    let above = &self.nodes[*parent as usize];
                    (*parent, above.max_def, above.max_rep)
                }
                None if at == 0 => (0, 0, 0),
                None => {
                    let what = "schema elements below one root";
                    let kind = FaultKind::Tree { what, expected: at as u64, found: count as u64 };
                    return Err(Fault::new(start, kind));
                }
            };
            let leaf = self.leaves.len() as u32;
            let node = &mut self.nodes[at];
            node.parent = parent;
            node.leaf = leaf;
            node.end = at as u32 + 1;
            (node.max_def, node.max_rep) = match Repetition::from_number(node.repetition) {
                // The root has no levels of its own, whatever it says.
                _ if at == 0 => (0, 0),
                Repetition::Optional => (def + 1, rep),
                Repetition::Repeated => (def + 1, rep + 1),
                _ => (def, rep),
            };
            if node.num_children > 0 {
                let children = node.num_children;
                open.push((at as u32, children));
            } else if node.present & PHYSICAL_TYPE != 0 && at > 0 {
                self.leaves.push(at as u32);
            }
        }
        for &(group, to_come) in open.iter().rev() {
            let node = &mut self.nodes[group as usize];
            if to_come > 0 {
                let expected = u64::from(node.num_children);
                let found = expected - u64::from(to_come);
                return Err(Fault::new(
                    start,
                    FaultKind::Tree { what: "children of a group", expected, found },
                ));
            }
            node.end = count as u32;
        }
        if count == 0 {
            let kind = FaultKind::Tree { what: "root element at least", expected: 1, found: 0 };
            return Err(Fault::new(start, kind));
        }
        Ok(())
    }

    /// The number of elements, the root among them.
    pub fn num_elements(&self) -> usize {
        self.nodes.len()
    }

    /// The number of leaves, which is the number of columns.
    pub fn num_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// The root element.
    pub fn root(&self) -> Element<'_> {
        Element { schema: self, index: 0 }
    }

    /// The element at `index` in depth-first order; 0 is the root.
    pub fn element(&self, index: usize) -> Option<Element<'_>> {
        (index < self.nodes.len()).then_some(Element { schema: self, index })
    }

    /// All elements in depth-first order, the root first.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = Element<'_>> {
        (0..self.nodes.len()).map(|index| Element { schema: self, index })
    }

    /// The leaf of column `column`.
    pub fn leaf(&self, column: usize) -> Option<Element<'_>> {
        self.leaves.get(column).map(|&index| Element { schema: self, index: index as usize })
    }

    /// All leaves, in the order of the columns.
    pub fn leaves(&self) -> impl ExactSizeIterator<Item = Element<'_>> {
        self.leaves.iter().map(|&index| Element { schema: self, index: index as usize })
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.names.capacity()
            + self.logical_types.capacity() * size_of::<LogicalType>()
            + self.leaves.capacity() * size_of::<u32>()
    }

    /// The element at a path of names joined by dots, without the root's: `address.city`.
    ///
    /// Names may hold dots themselves: at every level the child whose name is a prefix of what is
    /// left is taken, longer names first.
    pub fn find(&self, path: &str) -> Option<Element<'_>> {
        let mut open = vec![(self.root(), path)];
        while let Some((element, rest)) = open.pop() {
            let mut here: Vec<(Element<'_>, &str)> = Vec::new();
            for child in element.children() {
                match rest.strip_prefix(child.name()) {
                    Some("") => return Some(child),
                    Some(below) => here.extend(below.strip_prefix('.').map(|below| (child, below))),
                    None => {}
                }
            }
            here.sort_by_key(|(child, _)| child.name().len());
            open.append(&mut here);
        }
        None
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.elements()).finish()
    }
}

impl Node {
    fn empty() -> Self {
        Self {
            name_start: 0,
            name_len: 0,
            parent: 0,
            end: 0,
            leaf: 0,
            num_children: 0,
            physical_type: 0,
            type_length: 0,
            scale: 0,
            precision: 0,
            field_id: 0,
            repetition: 0,
            converted_type: 0,
            logical_type: 0,
            max_def: 0,
            max_rep: 0,
            present: 0,
        }
    }
}

/// An element of a [`Schema`]: the root, a group or a leaf.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    schema: &'a Schema,
    index: usize,
}

impl<'a> Element<'a> {
    fn node(&self) -> &'a Node {
        // Every `Element` is made with an index below the number of nodes.
        &self.schema.nodes[self.index]
    }

    fn has<T>(&self, bit: u16, value: T) -> Option<T> {
        (self.node().present & bit != 0).then_some(value)
    }

    /// The element's place in depth-first order.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The element's own name.
    pub fn name(&self) -> &'a str {
        let node = self.node();
        let start = node.name_start as usize;
        // The range was taken from `names` when the name was pushed there.
        &self.schema.names[start..start + node.name_len as usize]
    }

    /// The names from below the root down to the element.
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
    pub fn path(&self) -> String {
        self.path_names().join(".")
    }

    /// The group that holds the element; none for the root.
    pub fn parent(&self) -> Option<Element<'a>> {
        (self.index > 0).then(|| Element { schema: self.schema, index: self.node().parent as usize })
    }

    /// The ancestor right below the root (or the element itself, if it is that).
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

    /// The elements right below this one.
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

    /// The columns below this element; for a leaf, its own.
    pub fn columns(&self) -> std::ops::Range<usize> {
        let end = self.node().end as usize;
        let after = self.schema.nodes.get(end).map_or(self.schema.leaves.len(), |node| node.leaf as usize);
        self.node().leaf as usize..after
    }

    /// Whether the element is a leaf: a column, not a group.
    pub fn is_leaf(&self) -> bool {
        self.index > 0 && self.node().num_children == 0 && self.node().present & PHYSICAL_TYPE != 0
    }

    /// The column of a leaf.
    pub fn column(&self) -> Option<usize> {
        self.is_leaf().then(|| self.node().leaf as usize)
    }

    /// The physical type; none for groups.
    pub fn physical_type(&self) -> Option<PhysicalType> {
        self.has(PHYSICAL_TYPE, PhysicalType::from_number(self.node().physical_type))
    }

    /// The length of `FIXED_LEN_BYTE_ARRAY` values in bytes (for other types it says nothing).
    pub fn type_length(&self) -> Option<i32> {
        self.has(TYPE_LENGTH, self.node().type_length)
    }

    /// How often the element occurs in its parent; the root may have none.
    pub fn repetition(&self) -> Option<Repetition> {
        self.has(REPETITION, Repetition::from_number(self.node().repetition))
    }

    /// The number of children as the file says it.
    pub fn num_children(&self) -> Option<u32> {
        self.has(NUM_CHILDREN, self.node().num_children)
    }

    /// The annotation that logical types superseded.
    pub fn converted_type(&self) -> Option<ConvertedType> {
        self.has(CONVERTED_TYPE, ConvertedType::from_number(self.node().converted_type))
    }

    /// The scale of a `DECIMAL` converted type.
    pub fn scale(&self) -> Option<i32> {
        self.has(SCALE, self.node().scale)
    }

    /// The precision of a `DECIMAL` converted type.
    pub fn precision(&self) -> Option<i32> {
        self.has(PRECISION, self.node().precision)
    }

    /// The id that the original schema gave the field.
    pub fn field_id(&self) -> Option<i32> {
        self.has(FIELD_ID, self.node().field_id)
    }

    /// What the values mean.
    pub fn logical_type(&self) -> Option<&'a LogicalType> {
        if self.node().present & LOGICAL_TYPE == 0 {
            return None;
        }
        self.schema.logical_types.get(self.node().logical_type as usize)
    }

    /// The highest definition level.
    pub fn max_def(&self) -> u32 {
        self.node().max_def
    }

    /// The highest repetition level.
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
