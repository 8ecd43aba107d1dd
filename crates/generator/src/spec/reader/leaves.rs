//! Leaves: their values, and the earlier fields that these depend on.

use crate::draw::expression::{Expression, Operand, OperandRow, Reach};
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_rows::of_children::Fold;
use crate::draw::value_spec::reader::{OtherTables, Surroundings};
use crate::error::Result;
use crate::spec::dataset::{Kind, Leaf, Levels};
use crate::spec::reader::names::{children, key, other_table};
use crate::spec::reader::{Position, Reader};
use crate::spec::value_length::{MAX_FORMULA_BYTES, MAX_RECORD_BYTES, SHORT_BYTES, longest};
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

impl Reader<'_> {
    pub(super) fn leaf(
        &mut self,
        table: SpecTable<'_>,
        type_name: &str,
        levels: Levels,
        position: Position<'_>,
    ) -> Result<Kind> {
        let Some(kind) = LogicalType::read(type_name, table)? else {
            return Err(table.error(format!("{type_name} is not a leaf type"), "change the type"));
        };
        let (path, node) = (table.path(), table.need("values", "a leaf")?);
        if node.string() == Some("column") {
            let file = self.tables.map_or(Ok(None), |tables| tables.file(self.dataset))?;
            let Some(file) = file.filter(|_| position.levels.repetition == 0) else {
                let what = "a column of a file in a table without `file`, or in a list";
                return Err(node.error(what, "add `file = \"rows.csv\"` to the table"));
            };
            let values = file.column(path, &kind).map_err(|complaint| node.complain(complaint))?;
            let index = self.see(path, &kind, levels, &values);
            return Ok(Kind::Leaf(Box::new(Leaf::new(index, kind, values))));
        }
        let scope = self.scope(path);
        let (folder, depth, dataset, root) = (self.folder, self.depth, self.dataset, self.root);
        let mut around = Surroundings {
            kind: &kind,
            path,
            folder,
            operand: &mut |name| scope.operand(name),
            key: &mut |name| key(name, (dataset, root, path), self.tables, folder, depth),
            tables: OtherTables {
                referring: &|name| scope.referring(name),
                table: &|name, column| other_table((name, column), dataset, self.tables, folder, depth),
                children: &|name| children(name, dataset, self.tables),
                elements: &|name, counts| scope.elements(name, counts),
                fan_out: self.fan_out.as_ref(),
            },
            in_list: position.levels.repetition > 0,
            own: self.fan_out.as_ref().filter(|_| position.levels.repetition == 0).map(|_| Operand {
                leaf: self.next_leaf(),
                kind: kind.clone(),
                repetition: 0,
                nullable: levels.definition > 0,
                reach: Reach::ANY,
                longest: SHORT_BYTES,
                row: OperandRow::Before,
            }),
        };
        let values = ValueSpec::read(node, &mut around)?;
        check_length(&values, position.elements, node)?;
        let optional = levels.definition > position.levels.definition;
        self.use_operands(&values, optional, node)?;
        let index = self.see(path, &kind, levels, &values);
        let mut leaf = Leaf::new(index, kind, values);
        leaf.most_in_record = position.elements.into();
        Ok(Kind::Leaf(Box::new(leaf)))
    }

    /// Notes the fields that `values` depend on. Where one of them is null, so is the value.
    fn use_operands(&mut self, values: &ValueSpec, optional: bool, node: SpecNode<'_>) -> Result<()> {
        let operand = values.operands().iter().find(|operand| operand.nullable);
        let operand = operand.and_then(|operand| self.leaves.iter().find(|seen| seen.index == operand.leaf));
        let other = match values {
            ValueSpec::OtherColumn(column) if column.nullable => Some(&column.name),
            ValueSpec::OfChildren(children) if children.may_be_null && !optional => {
                let what = format!("the {}, of which some rows have none", children.name);
                let advice =
                    "add `nulls = 0`: the field is then null in these rows; or give each row at least one";
                return Err(node.error(what, advice));
            }
            _ => operand.map(|seen| &seen.path),
        };
        if let (false, Some(name)) = (optional, other) {
            let what = format!("a required field computed from {name}, which can be null");
            let advice = format!("add `nulls = 0`: the field is then null wherever {name} is");
            return Err(node.error(what, advice));
        }
        // To count elements, their levels are enough.
        if !matches!(values, ValueSpec::OfChildren(children) if children.fold == Fold::Count) {
            self.operands.extend(values.operands().iter().map(|o| o.leaf));
        }
        Ok(())
    }
}

/// Refuses a formula if the texts that it reads and its result would be too long together.
pub(super) fn check_formula(formula: &Expression, node: SpecNode<'_>) -> Result<()> {
    let texts = formula.operands.iter().filter(|operand| operand.kind.is_text());
    let result = formula.longest().unwrap_or(0);
    let bytes = texts.map(|operand| operand.longest).fold(result, u64::saturating_add);
    if bytes <= MAX_FORMULA_BYTES {
        return Ok(());
    }
    let what = format!("a formula with texts of up to {bytes} bytes");
    let advice = format!(
        "shorten the fields that the formula names, and its result, to {MAX_FORMULA_BYTES} bytes together"
    );
    Err(node.error(what, advice))
}

/// Refuses values if the `elements` of one record would be too long together.
fn check_length(values: &ValueSpec, elements: u32, node: SpecNode<'_>) -> Result<()> {
    let longest = longest(values).unwrap_or(0);
    if let ValueSpec::Expression(formula) = values {
        check_formula(formula, node)?;
    }
    if longest.saturating_mul(elements.into()) <= MAX_RECORD_BYTES {
        return Ok(());
    }
    let what = match elements {
        1 => format!("values of up to {longest} bytes"),
        n => format!("{n} values of up to {longest} bytes in one record"),
    };
    Err(node.error(what, format!("shorten the values or lists to {MAX_RECORD_BYTES} bytes in one record")))
}
