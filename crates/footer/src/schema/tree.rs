//! Places the elements of a schema in its tree: parents, subtree ends, leaves and their levels.
//!
//! Elements arrive depth first. Those that still await children are on a stack, without recursion, because a
//! schema may be 100,000 deep. The innermost one is kept apart, because most elements need only that one.

use crate::error::FaultKind;
use crate::schema::arena::{ElementTraits, Node, PHYSICAL_TYPE};
use crate::schema::enums::Repetition;

/// An element that awaits children, with its levels.
#[derive(Clone, Copy, Default)]
struct Group {
    element: u32,
    num_children: u32,
    to_come: u32,
    def: u32,
    rep: u32,
}

/// The tree of the elements so far.
pub(crate) struct Tree {
    /// The total number of elements.
    count: usize,
    innermost: Group,
    outer: Vec<Group>,
}

impl Tree {
    /// A tree for `count` elements, still empty.
    pub fn new(count: usize) -> Self {
        Self { count, innermost: Group::default(), outer: Vec::new() }
    }

    /// Places the last of `nodes`, which has these traits, after those before it.
    #[inline]
    pub fn place(
        &mut self,
        nodes: &mut [Node],
        traits: &ElementTraits,
        leaves: &mut Vec<u32>,
    ) -> Result<(), FaultKind> {
        // Elements are part of the footer, whose length has 32 bits.
        let at = nodes.len().saturating_sub(1) as u32;
        if at > 0 {
            if self.innermost.to_come == 0 {
                self.close(at, nodes)?;
            }
            self.innermost.to_come -= 1;
        }
        let Group { element, def, rep, .. } = self.innermost;
        let Some(node) = nodes.last_mut() else { return Ok(()) };
        node.parent = element;
        node.leaf = leaves.len() as u32;
        node.end = at + 1;
        (node.max_def, node.max_rep) = match Repetition::from_number(traits.repetition) {
            // The root has no levels, whatever repetition it states.
            _ if at == 0 => (0, 0),
            Repetition::Optional => (def + 1, rep),
            Repetition::Repeated => (def + 1, rep + 1),
            _ => (def, rep),
        };
        if traits.num_children > 0 {
            let num_children = traits.num_children;
            let (def, rep) = (node.max_def, node.max_rep);
            let opened = Group { element: at, num_children, to_come: num_children, def, rep };
            let around = std::mem::replace(&mut self.innermost, opened);
            if at > 0 {
                self.outer.push(around);
            }
        } else if traits.present & PHYSICAL_TYPE != 0 && at > 0 {
            leaves.push(at);
        }
        Ok(())
    }

    /// Closes the groups that await no more children, because the element at `at` has another parent.
    #[inline(never)]
    fn close(&mut self, at: u32, nodes: &mut [Node]) -> Result<(), FaultKind> {
        while self.innermost.to_come == 0 {
            if let Some(node) = nodes.get_mut(self.innermost.element as usize) {
                node.end = at;
            }
            self.innermost = self.outer.pop().ok_or(FaultKind::Tree {
                what: "schema elements below one root",
                expected: at.into(),
                found: self.count as u64,
            })?;
        }
        Ok(())
    }

    /// Closes all groups after the last element.
    pub fn end(self, nodes: &mut [Node]) -> Result<(), FaultKind> {
        let count = nodes.len() as u32;
        if count == 0 {
            return Err(FaultKind::Tree { what: "root element at least", expected: 1, found: 0 });
        }
        for group in std::iter::once(&self.innermost).chain(self.outer.iter().rev()) {
            let Some(node) = nodes.get_mut(group.element as usize) else { continue };
            if group.to_come > 0 {
                let expected = u64::from(group.num_children);
                let found = expected - u64::from(group.to_come);
                return Err(FaultKind::Tree { what: "children of a group", expected, found });
            }
            node.end = count;
        }
        Ok(())
    }
}
