//! The schema: all its elements in one arena, in the depth-first order of the file.
//!
//! Each element of the footer's list becomes a node. Reading it also places it in the tree (`tree`).

use std::fmt;
use std::ops::Range;

use crate::error::{Fault, FaultKind, Result};
use crate::memory::{allocate, pages};
use crate::schema::columns::{self, ColumnSelector};
use crate::schema::element::Element;
use crate::schema::element_kinds::Kinds;
use crate::schema::logical::{self, LogicalType};
use crate::schema::names::Names;
use crate::schema::tree::Tree;
use crate::thrift::cursor::{BINARY, Cursor, I32, STOP, STRUCT, Step};

/// A file's schema. Two schemas are equal if all their elements are.
///
/// Accessors cost a few loads unless their description says more.
#[derive(Clone)]
pub struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) traits: Vec<ElementTraits>,
    pub(crate) names: String,
    pub(crate) logical_types: Vec<LogicalType>,
    /// The element of every leaf, in column order.
    pub(crate) leaves: Vec<u32>,
    #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
    pub(crate) kept: crate::interop::kept::Kept,
}

/// The part of an element that is not shared with others. Wide schemas need newly touched memory: with all of
/// [`ElementTraits`] in here, that took a seventh of the time of a row group of 10,000 columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name_start: u32,
    pub(crate) name_len: u32,
    pub(crate) parent: u32,
    /// One past the last element below this one.
    pub(crate) end: u32,
    /// The number of leaves before this element.
    pub(crate) leaf: u32,
    pub(crate) max_def: u32,
    pub(crate) max_rep: u32,
    /// Index into `traits`.
    pub(crate) traits: u32,
}

impl Node {
    /// An element without a place in the tree yet.
    #[inline]
    pub(crate) fn new(name_start: u32, name_len: u32, traits: u32) -> Self {
        Self { name_start, name_len, parent: 0, end: 0, leaf: 0, max_def: 0, max_rep: 0, traits }
    }
}

/// Properties that many elements share.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ElementTraits {
    pub(crate) num_children: u32,
    pub(crate) physical_type: i32,
    pub(crate) type_length: i32,
    pub(crate) scale: i32,
    pub(crate) precision: i32,
    pub(crate) field_id: i32,
    pub(crate) repetition: i32,
    pub(crate) converted_type: i32,
    /// Index into `logical_types`.
    pub(crate) logical_type: u32,
    pub(crate) present: u16,
}

impl ElementTraits {
    /// Reads a field of `SchemaElement` that is a number; skips fields of other ids and types.
    fn read_field(&mut self, cursor: &mut Cursor<'_>, id: i16, wire: u8) -> Step<()> {
        let (number, bit) = match (id, wire) {
            (1, I32) => (&mut self.physical_type, PHYSICAL_TYPE),
            (2, I32) => (&mut self.type_length, TYPE_LENGTH),
            (3, I32) => (&mut self.repetition, REPETITION),
            (5, I32) => return self.read_num_children(cursor),
            (6, I32) => (&mut self.converted_type, CONVERTED_TYPE),
            (7, I32) => (&mut self.scale, SCALE),
            (8, I32) => (&mut self.precision, PRECISION),
            (9, I32) => (&mut self.field_id, FIELD_ID),
            (_, wire) => return cursor.skip(wire),
        };
        *number = cursor.i32()?;
        self.present |= bit;
        Ok(())
    }

    fn read_num_children(&mut self, cursor: &mut Cursor<'_>) -> Step<()> {
        let at = cursor.at;
        let value = cursor.i32()?;
        self.num_children = u32::try_from(value).map_err(|_| {
            let expected = "a non-negative number of children";
            Fault::new(at, FaultKind::Range { value: value.into(), expected })
        })?;
        self.present |= NUM_CHILDREN;
        Ok(())
    }
}

pub(crate) const PHYSICAL_TYPE: u16 = 1 << 0;
pub(crate) const TYPE_LENGTH: u16 = 1 << 1;
pub(crate) const REPETITION: u16 = 1 << 2;
pub(crate) const NUM_CHILDREN: u16 = 1 << 3;
pub(crate) const CONVERTED_TYPE: u16 = 1 << 4;
pub(crate) const SCALE: u16 = 1 << 5;
pub(crate) const PRECISION: u16 = 1 << 6;
pub(crate) const FIELD_ID: u16 = 1 << 7;
pub(crate) const LOGICAL_TYPE: u16 = 1 << 8;
const NAME: u16 = 1 << 9;

/// The size of the smallest schema element: a header, a length of 0 and a stop.
const MIN_ELEMENT_SIZE: usize = 3;

/// The usual size of an element in bytes; room for more is allocated only as elements are read.
const USUAL_ELEMENT: usize = 12;

/// How many of the last traits to search for an element's.
const LAST_TRAITS: usize = 16;

/// The usual length of a name in bytes; longer names double the room.
const USUAL_NAME: usize = 12;

impl Schema {
    /// Decodes the list of elements at the cursor.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Step<Self> {
        Self::read_by(cursor, &mut Kinds::default())
    }

    /// Like [`Schema::read`], using these kinds of elements and adding new ones.
    pub(crate) fn read_by(cursor: &mut Cursor<'_>, kinds: &mut Kinds) -> Step<Self> {
        let start = cursor.at;
        let count = cursor.list_of(STRUCT, "a list of schema elements")?;
        let fits = cursor.left() / MIN_ELEMENT_SIZE;
        if count > fits {
            let kind = FaultKind::Count { count: count as u64, left: cursor.left() as u64 };
            return Err(Fault::new(start, kind));
        }
        let mut schema = Self {
            nodes: allocate::with_room_at(start, count.min(cursor.left() / USUAL_ELEMENT + 1))?,
            traits: allocate::with_room_at(start, count.min(LAST_TRAITS))?,
            names: String::new(),
            logical_types: Vec::new(),
            leaves: Vec::new(),
            #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
            kept: Default::default(),
        };
        schema.leaves = allocate::with_room_at(start, schema.nodes.capacity())?;
        pages::advise(schema.nodes.spare_capacity_mut());
        pages::advise(schema.leaves.spare_capacity_mut());
        let mut names = Names::with_room(start, schema.nodes.capacity() * USUAL_NAME)?;
        let mut tree = Tree::new(count);
        kinds.expect(count);
        for at in 0..count {
            // The root has no kind: it has fewer required fields than other elements.
            let known = if at > 0 { kinds.next(cursor, &mut names, &mut schema.nodes) } else { None };
            let traits = match known {
                Some(traits) => traits,
                None => {
                    let start = cursor.at;
                    let (node, name) = schema.read_element(cursor, &mut names)?;
                    if at > 0 {
                        let traits = (node.traits, schema.traits[node.traits as usize]);
                        kinds.learn(cursor.bytes, start..cursor.at, name, node.name_len, traits);
                    }
                    schema.nodes.push(node);
                    schema.traits[node.traits as usize]
                }
            };
            tree.place(&mut schema.nodes, &traits, &mut schema.leaves)
                .map_err(|kind| Fault::new(start, kind))?;
        }
        tree.end(&mut schema.nodes).map_err(|kind| Fault::new(start, kind))?;
        schema.names = names.into_text().ok_or(Fault::new(start, FaultKind::Utf8))?;
        Ok(schema)
    }

    /// Decodes the element at the cursor; returns it with its name's location, including the name's length.
    fn read_element(&mut self, cursor: &mut Cursor<'_>, names: &mut Names) -> Step<(Node, Range<usize>)> {
        let start = cursor.at;
        let mut name_at = start..start;
        let (mut name_start, mut name_len) = (0, 0);
        let mut traits = ElementTraits::default();
        let mut last = 0;
        loop {
            let field = cursor.field(&mut last)?;
            match (field.id, field.wire) {
                (_, STOP) => break,
                (4, BINARY) => {
                    let at = cursor.at;
                    let name = cursor.binary()?;
                    name_at = at..cursor.at;
                    let range = cursor.at - name.len()..cursor.at;
                    name_start = names.push(cursor.bytes, range).ok_or(Fault::new(at, FaultKind::Utf8))?;
                    name_len = name.len() as u32;
                    traits.present |= NAME;
                }
                (4, found) => {
                    let kind = FaultKind::Wire { found, expected: "a name (binary)" };
                    return Err(Fault::new(cursor.at, kind));
                }
                (10, STRUCT) => {
                    traits.logical_type = self.read_logical_type(cursor)?;
                    traits.present |= LOGICAL_TYPE;
                }
                (id, wire) => traits.read_field(cursor, id, wire)?,
            }
        }
        if traits.present & NAME == 0 {
            return Err(Fault::missing(start, "name"));
        }
        Ok((Node::new(name_start, name_len, self.place_of(traits)), name_at))
    }

    /// Decodes the logical type at the cursor and returns its index in the list.
    fn read_logical_type(&mut self, cursor: &mut Cursor<'_>) -> Step<u32> {
        let logical = logical::read(cursor)?;
        // Neighbours are often alike: store only one of a run.
        if self.logical_types.last() != Some(&logical) {
            self.logical_types.push(logical);
        }
        Ok(self.logical_types.len() as u32 - 1)
    }

    /// The index of these traits, added unless they are among the last ones: neighbours are often alike.
    fn place_of(&mut self, traits: ElementTraits) -> u32 {
        let last = self.traits.len().saturating_sub(LAST_TRAITS);
        let known = self.traits[last..].iter().position(|known| *known == traits);
        let place = last + known.unwrap_or(self.traits.len() - last);
        if known.is_none() {
            self.traits.push(traits);
        }
        // Elements are part of the footer, whose length has 32 bits.
        place as u32
    }

    /// The number of elements, including the root.
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

    /// All elements in depth-first order, starting with the root.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = Element<'_>> {
        (0..self.nodes.len()).map(|index| Element { schema: self, index })
    }

    /// The leaf of column `column`.
    pub fn leaf(&self, column: usize) -> Option<Element<'_>> {
        self.leaves.get(column).map(|&index| Element { schema: self, index: index as usize })
    }

    /// All leaves, in column order.
    pub fn leaves(&self) -> impl ExactSizeIterator<Item = Element<'_>> {
        self.leaves.iter().map(|&index| Element { schema: self, index: index as usize })
    }

    /// Heap memory in bytes, without what a conversion to another crate's metadata keeps.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.traits.capacity() * size_of::<ElementTraits>()
            + self.names.capacity()
            + self.logical_types.capacity() * size_of::<LogicalType>()
            + self.leaves.capacity() * size_of::<u32>()
    }

    /// The columns that `selectors` match, in ascending order.
    ///
    /// Costs a walk over the elements for each selector, and an allocation.
    ///
    /// # Errors
    ///
    /// A selector matches no column.
    pub fn select(&self, selectors: &[ColumnSelector]) -> Result<Vec<usize>> {
        Ok(columns::leaves(selectors, self)?.into_iter().map(|leaf| leaf as usize).collect())
    }

    /// The element at a path of names joined by dots, without the root's name: `address.city`.
    ///
    /// Names may contain dots. If several elements match, returns the one with the fewest names, and among
    /// those the first. [`Schema::find_all`] returns all of them.
    ///
    /// Costs a walk down the path, past the siblings of each name.
    pub fn find(&self, path: &str) -> Option<Element<'_>> {
        self.find_all(path).min_by_key(|element| element.path_names().len())
    }

    /// All elements at a path of names joined by dots, without the root's name, in file order: names may be
    /// repeated within a group and may contain dots.
    ///
    /// Costs a walk over the elements below each name, and an allocation.
    pub fn find_all(&self, path: &str) -> impl Iterator<Item = Element<'_>> {
        self.root().find_all_below(path)
    }
}

impl<'a> Element<'a> {
    /// All elements at a path below this one.
    pub(crate) fn find_all_below(self, path: &str) -> impl Iterator<Item = Element<'a>> {
        // The groups still to search, each with the rest of the path below it.
        let mut open = vec![(self.children(), path)];
        std::iter::from_fn(move || {
            while let Some((children, rest)) = open.last_mut() {
                let Some(child) = children.next() else {
                    open.pop();
                    continue;
                };
                match rest.strip_prefix(child.name()) {
                    Some("") => return Some(child),
                    Some(below) => {
                        let below = below.strip_prefix('.').map(|below| (child.children(), below));
                        open.extend(below);
                    }
                    None => {}
                }
            }
            None
        })
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        // Where names, traits and logical types are stored depends on how they were decoded.
        let same = |(a, b): (Element<'_>, Element<'_>)| {
            let [own, others] = [a, b].map(|element| {
                let node = Node { name_start: 0, traits: 0, ..element.schema.nodes[element.index] };
                (node, ElementTraits { logical_type: 0, ..*element.traits() })
            });
            own == others && a.name() == b.name() && a.logical_type() == b.logical_type()
        };
        self.nodes.len() == other.nodes.len() && self.elements().zip(other.elements()).all(same)
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.elements()).finish()
    }
}
