//! Sums, counts and extremes of lists, and extremes of no children.

use arrow_array::types::Date32Type;

use super::*;

/// Orders whose totals sum their own lines, with payments that some orders lack.
const BILLS: &str = r#"
name = "bills"
[[tables]]
name = "orders"
rows = 3_000
fields = [
  { name = "id", type = "int64", values.sequence = {} },
  { name = "lines", type = "list", nulls = 0.1, empty = 0.1, length.uniform = { min = 1, max = 6 }, element = { type = "struct", nulls = 0.1, fields = [
    { name = "parts", type = "list", length.uniform = { min = 0, max = 3 }, element = { type = "int32", values.uniform = { min = 1, max = 9 } } },
    { name = "amount", type = "decimal", precision = 9, scale = 2, nulls = 0.2, values.uniform = { min = -5, max = 99.99 } },
    { name = "pieces", type = "int64", values.sum = { of = "parts" } },
  ] } },
  { name = "total", type = "decimal", precision = 12, scale = 2, values.sum = { of = "lines.amount" } },
  { name = "n", type = "int32", values.count = { of = "lines" } },
  { name = "dearest", type = "decimal", precision = 9, scale = 2, nulls = 0, values.max = { of = "lines.amount" } },
  { name = "taxed", type = "decimal", precision = 12, scale = 2, values.expression = "total * 2" },
  { name = "paid", type = "date", nulls = 0, values.max = { of = "payments.day" } },
]
[[tables]]
name = "payments"
per = { table = "orders", rows.weights = { 0 = 1, 1 = 2, 2 = 1 } }
fields = [
  { name = "order", type = "int64", values.parent = "id" },
  { name = "due", type = "decimal", precision = 12, scale = 2, values.parent = "total" },
  { name = "day", type = "date", values.uniform = { min = 2024-01-01, max = 2024-12-31 } },
]
"#;

fn bills(table: &str) -> (Dataset, RecordBatch) {
    let dataset = Dataset::table_from_toml(BILLS, table, None).unwrap();
    let made = rows(&dataset, 0..dataset.rows().unwrap(), 700);
    (dataset, made)
}

#[test]
fn a_row_has_the_sum_of_its_own_list() {
    let (_, made) = bills("orders");
    let lines = made.column_by_name("lines").unwrap().as_list::<i32>();
    let counts = made.column_by_name("n").unwrap().as_primitive::<Int32Type>();
    let (totals, taxed) = (whole(&made, "total"), whole(&made, "taxed"));
    let dearest = made.column_by_name("dearest").unwrap().as_primitive::<Decimal128Type>();
    for row in 0..made.num_rows() {
        let elements = lines.is_valid(row).then(|| lines.value(row));
        let mut amounts = Vec::new();
        if let Some(elements) = &elements {
            let elements = elements.as_struct();
            let amount = elements.column_by_name("amount").unwrap().as_primitive::<Decimal128Type>();
            let parts = elements.column_by_name("parts").unwrap().as_list::<i32>();
            let pieces = elements.column_by_name("pieces").unwrap().as_primitive::<Int64Type>();
            for line in (0..elements.len()).filter(|line| elements.is_valid(*line)) {
                amounts.extend(amount.is_valid(line).then(|| amount.value(line)));
                let of_line = parts.value(line);
                let sum: i32 = of_line.as_primitive::<Int32Type>().values().iter().sum();
                assert_eq!(pieces.value(line), i64::from(sum), "row {row}, line {line}");
            }
        }
        assert_eq!(counts.value(row) as usize, elements.map_or(0, |elements| elements.len()));
        assert_eq!(totals[row], amounts.iter().sum::<i128>(), "row {row}");
        assert_eq!(taxed[row], 2 * totals[row]);
        let max = dearest.is_valid(row).then(|| dearest.value(row));
        assert_eq!(max, amounts.into_iter().max(), "row {row}");
    }
    assert!(dearest.null_count() > 300, "{}", dearest.null_count());
}

#[test]
fn a_row_without_children_has_a_null_extreme_and_children_see_the_sum_of_a_list() {
    let ((_, orders), (_, payments)) = (bills("orders"), bills("payments"));
    let days = payments.column_by_name("day").unwrap().as_primitive::<Date32Type>();
    let totals = whole(&orders, "total");
    let mut last: HashMap<i64, i32> = HashMap::new();
    for (row, (order, due)) in ids(&payments, "order").into_iter().zip(whole(&payments, "due")).enumerate() {
        assert_eq!(due, totals[order as usize]);
        let day = last.entry(order).or_insert(i32::MIN);
        *day = days.value(row).max(*day);
    }
    let paid = orders.column_by_name("paid").unwrap().as_primitive::<Date32Type>();
    for (row, id) in ids(&orders, "id").into_iter().enumerate() {
        assert_eq!(paid.is_valid(row).then(|| paid.value(row)), last.get(&id).copied(), "order {id}");
    }
    // A quarter of them has none.
    assert!((700..800).contains(&paid.null_count()), "{}", paid.null_count());
}

#[test]
fn folded_lists_are_the_same_in_any_layout_and_alone() {
    let (orders, made) = bills("orders");
    for (start, end) in [(0, 1), (1_000, 1_030), (1_023, 2_049), (2_990, 3_000)] {
        let part = rows(&orders, start..end, 100);
        assert_eq!(part, made.slice(start as usize, (end - start) as usize));
    }
    for place in 2..made.num_columns() {
        let alone = orders.batches_of(&[place], 0..3_000, 7, 5_000).unwrap().next().unwrap().unwrap();
        assert_eq!(alone.column(0), made.column(place));
    }
    for group in [900, 333] {
        let one = files(&orders, 1, group, 1);
        assert!(one == files(&orders, 3, group, 1) && one == files(&orders, 2, group, 3), "{group}");
    }
}

#[test]
fn wrong_folds_name_what_there_is() {
    for (from, to, complaint) in [
        (
            "sum = { of = \"lines.amount\" }",
            "sum = { of = \"lines.tax\" }",
            "the list lines has no values \"tax\"",
        ),
        (
            "sum = { of = \"lines.amount\" }",
            "sum = { of = \"lines\" }",
            "name one of: lines.parts.list.element, lines.amount, lines.pieces",
        ),
        ("sum = { of = \"lines.amount\" }", "sum = { of = \"rows.amount\" }", "or an earlier list like"),
        (
            "sum = { of = \"lines.amount\" }",
            "sum = { of = \"lines.pieces\" }",
            "the sum of lines.pieces is an int64",
        ),
        ("count = { of = \"lines\" }", "count = { of = \"lines.amount\" }", "it counts elements"),
        (
            "sum = { of = \"parts\" }",
            "sum = { of = \"lines.amount\" }",
            "is not a table with rows for each row",
        ),
        (
            "nulls = 0, values.max = { of = \"lines.amount\" }",
            "values.max = { of = \"lines.amount\" }",
            "some rows have none",
        ),
        (
            "nulls = 0, values.max = { of = \"payments.day\" }",
            "values.max = { of = \"payments.day\" }",
            "add `nulls = 0`",
        ),
    ] {
        assert!(BILLS.contains(from), "{from}");
        let error =
            Dataset::table_from_toml(&BILLS.replacen(from, to, 1), "orders", None).unwrap_err().to_string();
        assert!(error.contains(complaint), "{complaint}: {error}");
    }
}
