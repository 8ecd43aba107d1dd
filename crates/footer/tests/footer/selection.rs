//! Decoding some columns and row groups returns the same as decoding everything.

use sawmill_footer::{ColumnChunk, Footer, Options};

use crate::handmade::{STRUCT, chunk, row_group};
use crate::samples;
use crate::thrift_writer::ThriftWriter;

fn same(ours: &ColumnChunk<'_>, whole: &ColumnChunk<'_>) {
    assert_eq!(format!("{ours:?}"), format!("{whole:?}"));
    assert_eq!(ours.details().unwrap(), whole.details().unwrap());
    assert_eq!((ours.leaf(), ours.row_group().index()), (whole.leaf(), whole.row_group().index()));
}

fn assert_part(bytes: &[u8], options: &Options, columns: &[usize], groups: &[usize]) {
    let whole = Footer::decode(bytes, &Options::new()).unwrap();
    let part = Footer::decode(bytes, options).unwrap();
    assert_eq!(part.num_columns(), columns.len());
    assert_eq!(part.row_groups().map(|group| group.index()).collect::<Vec<_>>(), groups);
    assert_eq!(part.num_row_groups_in_file(), whole.num_row_groups());
    for (group, &index) in part.row_groups().zip(groups) {
        let whole = whole.row_group(index).unwrap();
        assert_eq!(group.num_rows(), whole.num_rows());
        assert_eq!(group.columns().map(|chunk| chunk.leaf()).collect::<Vec<_>>(), columns);
        for (position, &leaf) in columns.iter().enumerate() {
            same(&group.column(position).unwrap(), &whole.column(leaf).unwrap());
            same(&group.column_of_leaf(leaf).unwrap(), &whole.column(leaf).unwrap());
        }
        assert!(group.column(columns.len()).is_none());
    }
    assert_eq!(part.created_by(), whole.created_by());
    assert_eq!(part.num_rows(), whole.num_rows());
}

#[test]
fn columns_are_chosen_by_index_path_root_and_pattern() {
    let (_, properties) = samples::settings().remove(0);
    let file = samples::write(&samples::nested(1000), properties);
    let bytes = samples::metadata(&file);
    let all = [0, 1, 2, 3];
    let options = Options::new();
    assert_part(bytes, &options, &[0, 1, 2, 3, 4], &all);
    assert_part(bytes, &options.clone().columns([4, 1, 1]), &[1, 4], &all);
    assert_part(bytes, &options.clone().column_paths(["person.dotted.name"]), &[1], &all);
    assert_part(
        bytes,
        &options.clone().column_paths(["person.dotted.name.list.item", "counts"]),
        &[1, 3, 4],
        &all,
    );
    assert_part(bytes, &options.clone().column_roots(["person"]), &[0, 1], &all);
    assert_part(bytes, &options.clone().column_globs(["*.city", "grid**"]), &[0, 2], &all);
    assert_part(bytes, &options.clone().columns([2]).column_roots(["counts"]), &[2, 3, 4], &all);
    // Of many selectors, too.
    let many = |name: &'static str| std::iter::repeat_n(name, 40);
    let paths = ["person.dotted.name", "person.dotted.name.list.item", "counts", "person.city", "grid"];
    let often = paths.into_iter().flat_map(many);
    assert_part(bytes, &options.clone().column_paths(often), &[0, 1, 2, 3, 4], &all);
    assert_part(bytes, &options.clone().column_paths(many("person.dotted.name")), &[1], &all);
    assert_part(bytes, &options.clone().column_roots(many("person")), &[0, 1], &all);
    for nothing in [
        options.clone().column_paths(many("grid").chain(["person.town"])),
        options.clone().column_paths(many("grid").chain(["person.dotted"])),
        options.clone().column_roots(many("grid").chain(["city"])),
        options.clone().columns([5]),
        options.clone().column_paths(["person.town"]),
        options.clone().column_roots(["city"]),
        options.clone().column_globs(["c?"]),
    ] {
        let error = Footer::decode(bytes, &nothing).unwrap_err();
        assert!(error.advice().contains("person, grid, counts"), "{error}");
    }
}

#[test]
fn repeated_names_and_names_with_dots_are_all_found() {
    // a, a, a.b, a: { b, c }, *
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.list(2, STRUCT, 8);
    let mut element = |name: &str, children: i32| {
        writer.begin_element();
        if children == 0 {
            writer.i32(1, 2);
        }
        writer.i32(3, 0);
        writer.binary(4, name.as_bytes());
        if children > 0 {
            writer.i32(5, children);
        }
        writer.stop();
    };
    for (name, children) in
        [("root", 5), ("a", 0), ("a", 0), ("a.b", 0), ("a", 2), ("b", 0), ("c", 0), ("*", 0)]
    {
        element(name, children);
    }
    writer.i64(3, 10);
    writer.list(4, STRUCT, 1);
    row_group(&mut writer, 6, |writer, _| chunk(writer, |_| {}));
    writer.stop();
    let bytes = writer.into_bytes();
    let selected = |options: Options| -> Vec<usize> {
        let footer = Footer::decode(bytes.as_slice(), &options).unwrap();
        (0..footer.num_columns()).filter_map(|position| footer.leaf_of(position)).collect()
    };
    assert_eq!(selected(Options::new().column_paths(["a"])), [0, 1, 3, 4]);
    assert_eq!(selected(Options::new().column_roots(["a"])), [0, 1, 3, 4]);
    assert_eq!(selected(Options::new().column_paths(["a.b"])), [2, 3]);
    assert_eq!(selected(Options::new().column_globs(["*"])), [0, 1, 2, 5]);
    assert_eq!(selected(Options::new().column_globs(["a.?"])), [2, 3, 4]);
    assert_eq!(selected(Options::new().column_globs(["\\*"])), [5]);
    let schema = Footer::decode(bytes.as_slice(), &Options::new()).unwrap().shared_schema();
    // Of several, the one with the fewest names, and of those the first.
    assert_eq!(schema.find("a.b").unwrap().column(), Some(2));
    assert_eq!(schema.find("a").unwrap().column(), Some(0));
    assert_eq!(schema.find_all("a").map(|at| at.columns()).collect::<Vec<_>>(), [0..1, 1..2, 3..5]);
}

#[test]
fn row_groups_are_chosen_by_index_bytes_and_rows() {
    let (_, properties) = samples::settings().remove(0);
    let file = samples::write(&samples::flat(1000), properties);
    let bytes = samples::metadata(&file);
    let columns: Vec<usize> = (0..17).collect();
    let options = Options::new();
    assert_part(bytes, &options.clone().row_groups(1..3), &columns, &[1, 2]);
    assert_part(bytes, &options.clone().row_groups(3..99), &columns, &[3]);
    assert_part(bytes, &options.clone().row_groups(7..9), &columns, &[]);
    assert_part(bytes, &options.clone().row_groups_where(|rows| rows < 300), &columns, &[3]);
    assert_part(bytes, &options.clone().row_groups(1..2).columns([3]), &[3], &[1]);
    // For any split, every row group falls into exactly one part.
    let len = file.len() as u64;
    for split in [0, 4, 5, len / 3, len / 2, len - 1, len] {
        let first = Footer::decode(bytes, &options.clone().row_groups_in_bytes(0..split)).unwrap();
        let second = Footer::decode(bytes, &options.clone().row_groups_in_bytes(split..len)).unwrap();
        let all: Vec<usize> =
            first.row_groups().chain(second.row_groups()).map(|group| group.index()).collect();
        assert_eq!(all, [0, 1, 2, 3]);
    }
}

#[test]
fn a_schema_can_be_given() {
    let (_, properties) = samples::settings().remove(0);
    let file = samples::write(&samples::flat(1000), properties);
    let bytes = samples::metadata(&file);
    let whole = Footer::decode(bytes, &Options::new()).unwrap();
    let columns: Vec<usize> = (0..17).collect();
    assert_part(bytes, &Options::new().schema(whole.shared_schema()), &columns, &[0, 1, 2, 3]);
    let other = samples::write(&samples::nested(10), samples::settings().remove(0).1);
    let other = Footer::from_file_bytes(&other, &Options::new()).unwrap();
    let error = Footer::decode(bytes, &Options::new().schema(other.shared_schema())).unwrap_err();
    assert_eq!(error.path(), "row_groups[0].columns");
}
