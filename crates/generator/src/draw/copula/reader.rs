//! Reads the `copula` of a dataset.

use crate::draw::choice::Dictionary;
use crate::draw::copula::{
    By, Copula, MAX_BEFORE, MAX_LAG, Member, Ranked, Scores, There, even, factors, is_even, shares_below,
};
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::error::Result;
use crate::random::rng::purpose;
use crate::spec::dataset::{Dataset, Field, Leaf};
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::literal::{Literal, entry};

/// The most members: the ranks of a block take 16 KiB for each.
const MAX_MEMBERS: usize = 200;

/// The most bins of a member.
const MAX_BINS: usize = 10_000;

/// The most counts of all members.
const MAX_COUNTS: usize = 1 << 20;

/// How far rounded correlations may exceed possible ones.
const ROUNDING: f64 = 0.1;

/// The kinds of members, by the key that names them.
const KINDS: [&str; 4] = ["field", "nulls", "present", "rows"];

/// A member without a field: its scores, its bins, and the leaf that follows it.
type Whole = (Scores, Option<Vec<f64>>, Option<(usize, Ranked)>);

/// A member as it is read.
struct Read {
    /// Its key and the name of the field.
    name: (&'static str, String),
    /// The bins of its values or nulls; `None` if they are as many as a table of counts has.
    bins: Option<Vec<f64>>,
    leaf: Option<(usize, Ranked)>,
}

/// The paths of the fields that are members of the copula of `root`, and whether `present` is one.
pub(crate) fn members(root: SpecTable<'_>) -> (Vec<&str>, bool) {
    let nodes = root.get("copula").and_then(SpecNode::array).into_iter().flatten();
    let tables: Vec<SpecTable<'_>> = nodes.filter_map(|node| node.any_table("").ok()).collect();
    let paths = |key| tables.iter().filter_map(move |table| table.get(key)?.string());
    (
        paths("field").chain(paths("nulls")).collect(),
        tables.iter().any(|table| table.get("present").is_some()),
    )
}

/// Reads the `copula` of `root`, if it has one, and tells the leaves of `dataset` which member each follows.
pub(crate) fn read(root: SpecTable<'_>, dataset: &mut Dataset) -> Result<()> {
    let Some(node) = root.get("copula") else { return Ok(()) };
    let members =
        node.array().filter(|members| (1..=MAX_MEMBERS).contains(&members.len())).ok_or_else(|| {
            let what = format!("`copula` is {}", node.described());
            node.error(what, format!("write 1 to {MAX_MEMBERS} members, each under [[copula]]"))
        })?;
    let mut reader = Reader { dataset, read: Vec::new(), members: Vec::new(), counts: 0 };
    let correlations = members.map(|member| reader.member(member)).collect::<Result<Vec<_>>>()?;
    let (all, excess) = factors(&correlations);
    if excess > ROUNDING {
        let what = "correlations that no data have together";
        return Err(node.error(what, "lower the correlations of `with` that are near to 1 or -1"));
    }
    let Reader { read, mut members, .. } = reader;
    members.iter_mut().zip(all).for_each(|(member, factors)| member.factors = factors);
    let mut values: Vec<(usize, &'static str, Ranked)> = Vec::new();
    let mut present = None;
    for Read { name, leaf, .. } in read {
        match leaf {
            Some((_, ranked)) if name.0 == "present" => present = Some(ranked),
            leaf => values.extend(leaf.map(|(index, ranked)| (index, name.0, ranked))),
        }
    }
    tell_there(dataset, &values, present.as_ref(), &mut members);
    let even_rows = dataset.rows.filter(|rows| is_even(*rows, members.len()));
    dataset.present_ranked = present;
    dataset.copula = Some(Copula { members, even_rows, ..Copula::default() });
    dataset.each_leaf_mut(&mut |leaf| {
        while let Some(at) = values.iter().position(|(index, ..)| *index == leaf.index) {
            match values.swap_remove(at) {
                (_, "nulls", ranked) => leaf.null_member = Some(ranked.member),
                (_, _, ranked) => leaf.ranked = Some(Box::new(ranked)),
            }
        }
    });
    Ok(())
}

/// Tells the members of fields which rows have a value, as far as other members say so.
fn tell_there(
    dataset: &Dataset,
    values: &[(usize, &'static str, Ranked)],
    present: Option<&Ranked>,
    members: &mut [Member],
) {
    dataset.each_leaf(&mut |field, leaf| {
        let of = |kind: &str| values.iter().find(|(index, name, _)| *index == leaf.index && *name == kind);
        let there = match (field.nulls, of("nulls"), present) {
            (Nulls::Share(share), Some((.., nulls)), _) => {
                There { member: nulls.member, ranks: vec![(share, 1.0)] }
            }
            (Nulls::Together(bit), _, Some(present)) => {
                let ends = present.ends.windows(2).zip(&present.numbers);
                let ranks =
                    ends.filter(|(_, mask)| *mask >> bit & 1 == 1).map(|(ends, _)| (ends[0], ends[1]));
                There { member: present.member, ranks: ranks.collect() }
            }
            _ => return,
        };
        if let Some((.., ranked)) = of("field")
            && let Some(member) = members.get_mut(ranked.member)
        {
            member.there = Some(there);
        }
    });
}

struct Reader<'a> {
    dataset: &'a Dataset,
    read: Vec<Read>,
    members: Vec<Member>,
    /// How many counts have been read.
    counts: usize,
}

impl Reader<'_> {
    /// Reads a member, and returns its correlations with the ones before it.
    fn member(&mut self, node: SpecNode<'_>) -> Result<Vec<f64>> {
        let table = node.table(
            "a member of the copula",
            &["field", "nulls", "present", "rows", "order", "with", "by", "autocorrelation", "lag"],
        )?;
        let (kind, of) = kind(table)?;
        let with = self.correlations(table)?;
        let (name, scores, bins, leaf) = if matches!(kind, "rows" | "present") {
            let (scores, bins, leaf) = self.whole(kind, of)?;
            (String::new(), scores, bins, leaf)
        } else if let Some((scores, bins)) = self.cycle(kind, of)? {
            if table.get("order").is_some() || with.iter().any(|correlation| *correlation != 0.0) {
                let what = "`order` or `with` of a field with a cycle";
                return Err(of.error(what, "remove it: its ranks are a function of the row"));
            }
            (of.string().unwrap_or_default().to_owned(), scores, Some(bins), None)
        } else {
            let name = of.string().unwrap_or_default();
            let (field, leaf) = self.leaf(of, name)?;
            let (bins, ranked) = match kind {
                "nulls" => self.nulls(of, field)?,
                _ => self.values(table, of, leaf)?,
            };
            let purpose = purpose(&field.path, if kind == "nulls" { "copula nulls" } else { "copula" });
            (name.to_owned(), Scores::Drawn { leaf: leaf.index, purpose }, bins, Some((leaf.index, ranked)))
        };
        if self.read.iter().any(|read| read.name == (kind, name.clone())) {
            let what = format!("a second member with `{kind} = {}`", of.described());
            return Err(of.error(what, "name each once"));
        }
        let by = table.get("by").map(|node| self.by(node, bins.as_deref())).transpose()?;
        let is_drawn = matches!(scores, Scores::Drawn { .. });
        if !is_drawn && by.is_some() {
            let what = format!("`by` of `{kind} = {}`", of.described());
            return Err(of.error(what, "remove it: it depends on the number of the row alone"));
        }
        let before = table.get("autocorrelation").map_or(Ok(0.0), |node| {
            let advice = format!("write 0 to {MAX_BEFORE} for a member that is drawn");
            let read = node.number_in(0.0..=MAX_BEFORE).filter(|_| is_drawn);
            read.ok_or_else(|| node.unfit("`autocorrelation` is {}", advice))
        })?;
        self.read.push(Read { name: (kind, name), bins, leaf });
        let advice = format!("write 1 to {MAX_LAG} rows, beside `autocorrelation`");
        let lag = table.read("lag", advice, |node| node.integer_in(1..=MAX_LAG).filter(|_| before > 0.0))?;
        let (lag, factors) = (lag.unwrap_or(1), Vec::new());
        self.members.push(Member { scores, before, lag, factors, by, there: None });
        Ok(with)
    }

    /// Reads the member `rows = true` or `present = true`, which names no field.
    fn whole(&self, kind: &str, node: SpecNode<'_>) -> Result<Whole> {
        let (rows, present) = (self.dataset.rows.filter(|rows| *rows > 0), &self.dataset.present);
        match (kind, node.boolean(), rows, present) {
            ("rows", Some(true), Some(rows), _) if self.read.is_empty() => {
                Ok((Scores::Rows(rows), None, None))
            }
            ("present", Some(true), _, Some(present)) => {
                let ends = shares_below(present.table.probabilities(), &[]);
                let numbers = present.masks.clone();
                let ranked = Ranked { member: self.read.len(), ends: ends.clone(), numbers };
                let scores = Scores::Drawn { leaf: usize::MAX, purpose: purpose("", "copula present") };
                Ok((scores, Some(ends), Some((usize::MAX, ranked))))
            }
            ("rows", ..) => {
                Err(node.wrong("rows", "write `rows = true` as the first member, of a dataset with `rows`"))
            }
            _ => Err(node.wrong("present", "write `present = true`, for a dataset with `present`")),
        }
    }

    fn leaf(&self, node: SpecNode<'_>, name: &str) -> Result<(&Field, &Leaf)> {
        let mut found = None;
        self.dataset.each_leaf(&mut |field, leaf| {
            if field.path == name && field.levels.repetition == 0 {
                found = Some((field, leaf));
            }
        });
        found.ok_or_else(|| {
            node.unfit("{} is not a field outside of lists", "write the name of a field of the record")
        })
    }

    fn correlations(&self, table: SpecTable<'_>) -> Result<Vec<f64>> {
        let n = self.read.len();
        let Some(node) = table.get("with") else { return Ok(vec![0.0; n]) };
        let read = node.list(|v| v.number_in(-1.0..=1.0));
        read.filter(|all| all.len() == n).ok_or_else(|| {
            let what = "`with` of a member of the copula";
            node.error(what, format!("write a list of {n} correlations, one for each member before it"))
        })
    }

    /// The ranks and the bins of a field with a cycle.
    fn cycle(&self, kind: &str, node: SpecNode<'_>) -> Result<Option<(Scores, Vec<f64>)>> {
        let (_, leaf) = self.leaf(node, node.string().unwrap_or_default())?;
        Ok(match (&leaf.values, leaf.values.cycle()) {
            (ValueSpec::Choice { table, .. }, Some(cycle)) if kind == "field" => {
                let shares = table.probabilities();
                let scores = Scores::Cycle { ranks: cycle.ranks(shares), each: cycle.each };
                Some((scores, shares_below(shares, &[])))
            }
            _ => None,
        })
    }

    /// The bins of a field's nulls.
    fn nulls(&self, node: SpecNode<'_>, field: &Field) -> Result<(Option<Vec<f64>>, Ranked)> {
        let Nulls::Share(share) = field.nulls else {
            return Err(node.error(format!("the nulls of {}", field.path), "name a field that has `nulls`"));
        };
        let ranked = Ranked { member: self.read.len(), ends: Vec::new(), numbers: Vec::new() };
        Ok((Some(vec![0.0, share, 1.0]), ranked))
    }

    /// The bins of a field's values: each value, if they are from a list.
    fn values(
        &self,
        table: SpecTable<'_>,
        node: SpecNode<'_>,
        leaf: &Leaf,
    ) -> Result<(Option<Vec<f64>>, Ranked)> {
        let member = self.read.len();
        let (weights, dictionary) = match &leaf.values {
            ValueSpec::Quantiles(_) => {
                return Ok((None, Ranked { member, ends: Vec::new(), numbers: Vec::new() }));
            }
            ValueSpec::Boolean(weights) => (weights, None),
            ValueSpec::Choice { table, dictionary, by: None } => (table, Some(dictionary)),
            _ => {
                let advice = "name a field whose values are `quantiles`, `weights`, `choice` or `cycle`";
                return Err(node.unfit("{} has no ranks", advice));
            }
        };
        let shares = weights.probabilities();
        let numbers = match (table.get("order"), dictionary) {
            (Some(order), Some(dictionary)) => ordered(order, leaf, dictionary)?,
            (Some(order), None) => {
                return Err(order.error("`order` of a boolean", "remove it: false comes first"));
            }
            (None, _) => (0..shares.len() as u32).collect(),
        };
        let of_number = |number: &u32| shares.get(*number as usize).copied().unwrap_or(0.0);
        let ends = shares_below(&numbers.iter().map(of_number).collect::<Vec<_>>(), &[]);
        let bins = (ends.len() <= MAX_BINS).then(|| ends.clone());
        Ok((bins, Ranked { member, ends, numbers }))
    }

    /// Reads `by = { field = "NAME", counts = [[...], ...] }`.
    fn by(&mut self, node: SpecNode<'_>, bins: Option<&[f64]>) -> Result<By> {
        let table = node.table("`by`", &["field", "nulls", "present", "rows", "counts"])?;
        let (kind, of) = kind(table)?;
        let name = of.string().unwrap_or_default();
        let named = |read: &Read| read.name.0 == kind && read.name.1 == name;
        let member = self.read.iter().position(named).ok_or_else(|| {
            let what = format!("no member before this one has `{kind} = {}`", of.described());
            of.error(what, "name one that comes before it")
        })?;
        let counts = table.need("counts", "`by`")?;
        let wrong =
            |what: &str| counts.error(what, "write a list of counts for each bin of the other member");
        let is_count = |n: &f64| n.is_finite() && *n >= 0.0;
        let read = counts.list(|line| line.list(|n| n.number().filter(is_count)));
        let lines = read.filter(|lines| lines.iter().all(|line| !line.is_empty()) && !lines.is_empty());
        let lines = lines.ok_or_else(|| wrong("`counts` must be lists of numbers"))?;
        let width = lines.first().map_or(0, Vec::len);
        self.counts = self.counts.saturating_add(width.saturating_mul(lines.len()));
        if self.counts > MAX_COUNTS || width.max(lines.len()) > MAX_BINS {
            return Err(wrong(&format!("more than {MAX_COUNTS} counts, or {MAX_BINS} in a list")));
        }
        let of =
            self.read.get(member).and_then(|read| read.bins.clone()).unwrap_or_else(|| even(lines.len()));
        let own = bins.map_or_else(|| even(width), <[f64]>::to_vec);
        if of.len() != lines.len() + 1 || lines.iter().any(|line| line.len() + 1 != own.len()) {
            let (of, own) = (of.len() - 1, own.len() - 1);
            return Err(wrong(&format!("`counts` that are not {of} lists of {own} numbers")));
        }
        let below = lines.iter().map(|line| shares_below(line, &own)).collect();
        Ok(By { member, of, own, below })
    }
}

/// The key that says what a member is, with its value.
fn kind(table: SpecTable<'_>) -> Result<(&'static str, SpecNode<'_>)> {
    let mut found = KINDS.into_iter().filter_map(|kind| Some((kind, table.get(kind)?)));
    match (found.next(), found.next()) {
        (Some(found), None) => Ok(found),
        _ => Err(table.error(
            "a member of the copula that is not one thing",
            "write one of `field`, `nulls`, `present` and `rows`",
        )),
    }
}

/// The numbers of a list's values in the `order` of their ranks.
fn ordered(order: SpecNode<'_>, leaf: &Leaf, dictionary: &Dictionary) -> Result<Vec<u32>> {
    let entries = &dictionary.entries;
    let place = |node: SpecNode<'_>| {
        let wanted = entry(&leaf.kind, &Literal::new(node)?)?;
        entries.iter().position(|entry| *entry == wanted)
    };
    let read: Option<Vec<usize>> = order.array().and_then(|all| all.map(place).collect());
    let mut places = read.unwrap_or_default();
    let numbers = places.iter().map(|place| *place as u32).collect();
    places.sort_unstable();
    if places.iter().copied().ne(0..entries.len()) {
        let advice = format!("list each of the {} values of the field once", entries.len());
        return Err(order.error("`order` that is not the values of the field", advice));
    }
    Ok(numbers)
}
