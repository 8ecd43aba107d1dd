use super::*;
use crate::spec::dataset::BUILT_IN;

#[test]
fn built_in_specs_are_valid() {
    for (name, _) in BUILT_IN {
        let dataset = Dataset::built_in(name).unwrap().unwrap();
        assert_eq!(dataset.name(), *name);
    }
    assert_eq!(Dataset::built_in("wide:7:string").unwrap().unwrap().columns(), 7);
    assert_eq!(Dataset::built_in("wide").unwrap().unwrap().columns(), 1000);
    assert!(Dataset::built_in("wide:0").unwrap().is_err());
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

fn field(rest: &str) -> String {
    format!("name = \"d\"\n[[fields]]\nname = \"f\"\n{rest}")
}

/// A record of a time, a whole number and a field `f`.
fn derived(rest: &str) -> String {
    let at = "values = { walk = { start = 2024-01-01T00:00:00, step = \"1s\" } }";
    let small = "values = { uniform = { min = 1, max = 200 } }";
    format!(
        "name = \"d\"\n[[fields]]\nname = \"at\"\ntype = \"timestamp\"\n{at}\n[[fields]]\nname = \"n\"\ntype = \"int32\"\n{small}\n[[fields]]\nname = \"f\"\n{rest}"
    )
}

#[test]
fn a_formula_whose_values_never_fit_is_refused() {
    let cases = [
        ("date", "at", "divide, like floor((at) / 86400000000)"),
        ("date", "at + 1d", "too large for a date"),
        ("time", "at", "(at) % 86400000000"),
        ("int32", "at", "at least 1704067200000000"),
        ("int8", "n + 127", "at least 128, too large for an int8"),
        ("uint8", "-n", "at most -1, too small for a uint8"),
        ("float16", "n * 70000", "at least 70000"),
        ("int32", "n / 0", "always divides by zero"),
        ("double", "n % (2 - 2)", "always divides by zero"),
    ];
    for (kind, formula, expected) in cases {
        let spec = derived(&format!("type = \"{kind}\"\nvalues = {{ expression = \"{formula}\" }}"));
        let error = Dataset::from_toml(&spec).expect_err(&spec).to_string();
        assert!(error.contains(expected) && error.contains("field f"), "{formula} in {kind}: {error}");
    }
    // Values that fit only sometimes are checked when rows are drawn.
    for (kind, formula) in [
        ("date", "floor(at / 86400000000)"),
        ("time", "at % 86400000000"),
        ("int8", "n + 126"),
        ("int8", "n - 200"),
        ("uint8", "100 - n"),
        ("timestamp", "at + lognormal(3h, 0.5)"),
        ("float16", "n * 60000"),
    ] {
        let spec = derived(&format!("type = \"{kind}\"\nvalues = {{ expression = \"{formula}\" }}"));
        Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    }
}

#[test]
fn distributions_that_do_not_fit_their_type_are_refused() {
    for (kind, values, expected) in [
        ("int8", "{ normal = { mean = 1000, stddev = 1 } }", "values around 1000 in an int8"),
        ("int8", "{ normal = { mean = 0, stddev = 1, max = 300 } }", "`max = 300` of an int8"),
        ("uint8", "{ exponential = { mean = 9, min = -1 } }", "`min = -1` of a uint8"),
        ("float16", "{ lognormal = { median = 1e6, sigma = 1 } }", "in a float16 - "),
        ("float16", "{ zipf = { n = 70_000, s = 1 } }", "values up to 70000 in a float16"),
        ("float16", "{ uniform = { min = 0, max = 1e6 } }", "not a finite float16"),
        ("float", "{ constant = 1e39 }", "not a float"),
        ("double", "{ choice = [1e999] }", "not a double"),
        ("date", "{ sequence = { start = 2024-01-01, step = \"12h\" } }", "use a step of whole units"),
    ] {
        let spec = field(&format!("type = \"{kind}\"\nvalues = {values}"));
        let error = Dataset::from_toml(&spec).expect_err(&spec).to_string();
        assert!(error.contains(expected), "{values} in {kind}: {error}");
    }
    for (kind, values) in [
        ("int8", "{ normal = { mean = 1000, stddev = 1, max = 100 } }"),
        ("int64", "{ exponential = { mean = 1e18, max = 9223372036854775807 } }"),
        ("float", "{ choice = [inf, -inf, nan] }"),
    ] {
        let spec = field(&format!("type = \"{kind}\"\nvalues = {values}"));
        Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    }
}

#[test]
fn a_field_may_refer_to_a_later_key() {
    let boss = |to: &str, rest: &str| {
        format!(
            "name = \"staff\"\nrows = 100\n[[fields]]\nname = \"boss\"\ntype = \"int64\"\nvalues = {{ ref = \"{to}\" }}\n{rest}"
        )
    };
    let id = "type = \"int64\", values = { sequence = { start = 1 } }";
    let key =
        format!("[[fields]]\nname = \"key\"\ntype = \"struct\"\nfields = [{{ name = \"id\", {id} }}]\n");
    Dataset::from_toml(&boss("staff.key.id", &key)).unwrap();
    Dataset::from_toml(&boss("staff.boss", "")).unwrap_err();
    // A key must be required, and must not be inside a list.
    for rest in [
        key.replace("type = \"struct\"", "type = \"struct\"\nnulls = 0.1"),
        key.replace("type = \"int64\",", "type = \"int64\", nulls = 0.1,"),
        key.replace("type = \"struct\"", "type = \"struct\"\npresent = [{ fields = [\"id\"], weight = 1 }]"),
        key.replace("sequence = { start = 1 }", "constant = 1"),
        "[[fields]]\nname = \"key\"\ntype = \"list\"\nlength = { constant = 1 }\nelement = { type = \"int64\", values = { sequence = {} } }\n".to_owned(),
    ] {
        let error = Dataset::from_toml(&boss("staff.key.id", &rest)).expect_err(&rest).to_string();
        assert!(error.contains("staff has no key \"key.id\""), "{error}");
    }
}

#[test]
fn an_invalid_spec_is_refused_with_line_column_field_and_what_is_allowed() {
    let list = |rest: &str| field(&format!("type = \"list\"\n{rest}"));
    let cases = [
        ("name = ".to_owned(), "line 1, column 8"),
        ("name = \"d\"\nfields = []".to_owned(), "no fields - line 2, column 10, the record"),
        ("name = \"a/b\"\nfields = []".to_owned(), "start of file names"),
        (
            "name = \"d\"\nsize = 3".to_owned(),
            "unknown key `size` of a dataset - line 2, column 1, the record - allowed there: `name`",
        ),
        (
            field("type = \"int32\"\ncolour = 1"),
            "line 5, column 1, field f - allowed there: `name`, `type`, `nulls`, `hidden` and `values`",
        ),
        (field("type = \"int31\""), "line 4, column 8, field f - allowed: `boolean`"),
        (field("type = \"int32\""), "line 2, column 1, field f - add `values`"),
        (field("type = \"int32\"\nvalues = \"person_name\""), "person_name draws strings"),
        (
            field("type = \"int32\"\nvalues = { norml = {} }"),
            "unknown distribution \"norml\" - line 5, column 10, field f - allowed: `constant`",
        ),
        (field("type = \"int32\"\nnulls = 1.5\nvalues = { constant = 1 }"), "not a probability"),
        (
            field("type = \"int32\"\nvalues = { constant = 3000000000 }"),
            "use a whole number from -2147483648",
        ),
        (field("type = \"uint8\"\nvalues = { uniform = { min = -1, max = 1 } }"), "not a uint8"),
        (field("type = \"int32\"\nvalues = { uniform = { min = 2, max = 1 } }"), "greater than"),
        (field("type = \"int8\"\nvalues = { zipf = { n = 1000, s = 1 } }"), "values up to 1000 in an int8"),
        (field("type = \"string\"\nvalues = { unique = \"x\" }"), "needs {id}"),
        (field("type = \"string\"\nvalues = { weights = { } }"), "no values"),
        (field("type = \"string\"\nvalues = { pattern = \"[a\" }"), "not a valid pattern"),
        (
            field("type = \"string\"\nvalues = { choice = { file = \"/no/such/file\" } }"),
            "cannot read /no/such/file",
        ),
        (field("type = \"double\"\nvalues = { expression = \"x + 1\" }"), "x is not an earlier field"),
        (field("type = \"int64\"\nvalues = { ref = \"nothing.id\" }"), "cannot find the dataset nothing"),
        (field("type = \"decimal\"\nvalues = { constant = 1 }"), "add `precision`"),
        (
            field("type = \"decimal\"\nprecision = 3\nscale = 2\nvalues = { constant = 1.234 }"),
            "not a decimal",
        ),
        (
            field("type = \"decimal\"\nprecision = 20\nstorage = \"int64\"\nvalues = { constant = 1 }"),
            "int64 holds 18 digits",
        ),
        (
            field("type = \"timestamp\"\nzone = \"Mars/X\"\nvalues = { constant = 2024-01-01T00:00:00Z }"),
            "\"Mars/X\" is not a time zone",
        ),
        (
            field(
                "type = \"timestamp\"\nzone = \"europe/vienna\"\nvalues = { constant = 2024-01-01T00:00:00Z }",
            ),
            "write \"Europe/Vienna\"",
        ),
        (
            field("type = \"timestamp\"\nunit = \"h\"\nvalues = { constant = 2024-01-01 }"),
            "use \"ms\", \"us\", \"ns\" or \"int96\"",
        ),
        (list("values = \"person_name\""), "unknown key `values` of a field of type list"),
        (list("length = { constant = 1 }"), "add `element`"),
        (list("length = { weights = { x = 1 } }"), "not a length"),
        (
            field("type = \"string\"\nvalues = { text = { length = { constant = 9999999 } } }"),
            "9999999 is not a length",
        ),
        (field("type = \"double\"\nvalues = { lognormal = { median = 0, sigma = 1 } }"), "use more than 0"),
        (
            list(
                "length = { constant = 2 }\nlegacy = true\nelement = { type = \"int32\", nulls = 0.5, values = { constant = 1 } }",
            ),
            "legacy",
        ),
        (
            field("type = \"struct\"\npresent = [{ fields = [\"x\"], weight = 1 }]\nfields = []"),
            "no field is named \"x\"",
        ),
        (
            field(
                "type = \"map\"\nlength = { constant = 3 }\nkey = { type = \"boolean\", values = { weights = { true = 1, false = 1 } } }\nvalue = { type = \"int32\", values = { constant = 1 } }",
            ),
            "only 2 different keys",
        ),
    ];
    for (spec, expected) in cases {
        let error = Dataset::from_toml(&spec).unwrap_err().to_string();
        assert!(error.contains(expected), "{spec}\n=> {error}\nexpected {expected}");
        assert!(error.contains("line "), "{error}");
    }
}

#[test]
fn an_expression_over_an_optional_field_needs_an_optional_field() {
    let spec = |nulls: &str| {
        format!(
            "name = \"d\"\n[[fields]]\nname = \"a\"\ntype = \"int32\"\nnulls = 0.5\nvalues = {{ constant = 1 }}\n\
             [[fields]]\nname = \"b\"\ntype = \"int32\"\n{nulls}values = {{ expression = \"a + 1\" }}\n"
        )
    };
    let error = Dataset::from_toml(&spec("")).unwrap_err().to_string();
    assert!(error.contains("which can be null") && error.contains("nulls = 0"), "{error}");
    assert!(Dataset::from_toml(&spec("nulls = 0\n")).is_ok());
}

#[test]
fn an_expression_cannot_look_into_another_list() {
    let spec = "name = \"d\"\n[[fields]]\nname = \"a\"\ntype = \"list\"\nlength = { constant = 2 }\n\
                element = { type = \"int32\", values = { constant = 1 } }\n\
                [[fields]]\nname = \"b\"\ntype = \"int32\"\nvalues = { expression = \"a.list.element + 1\" }\n";
    let error = Dataset::from_toml(spec).unwrap_err().to_string();
    assert!(error.contains("inside a list"), "{error}");
}

#[test]
fn a_reference_uses_the_row_count_of_the_other_dataset() {
    let spec = |values: &str| {
        format!("name = \"d\"\n[[fields]]\nname = \"f\"\ntype = \"int64\"\nvalues = {{ ref = {values} }}\n")
    };
    assert!(Dataset::from_toml(&spec("\"orders.id\"")).is_ok());
    assert!(Dataset::from_toml(&spec("{ to = \"orders.id\", rows = 10, s = 0 }")).is_ok());
    let error = Dataset::from_toml(&spec("\"orders.status\"")).unwrap_err().to_string();
    assert!(error.contains("orders has no key \"status\""), "{error}");
    let tables = "name = 's'\ntables = [{ name = 'a', rows = 1, fields = [{ name = 'id', type = 'int8', values.sequence = {} }] }, { name = 'b', rows = 1, fields = [{ name = 'a', type = 'int8', values.ref = 'a.idd' }] }]";
    let error = Dataset::table_from_toml(tables, "b", None).unwrap_err().to_string();
    assert!(error.contains("a has no key \"idd\" - line"), "{error}");
    let error = Dataset::from_toml(&spec("\"devices.id\"")).unwrap_err().to_string();
    assert!(error.contains("a unique key draws strings"), "{error}");
}
