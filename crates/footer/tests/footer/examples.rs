//! The examples run, and their own assertions hold.

#[path = "../../examples/object_store.rs"]
mod object_store;
#[path = "../../examples/three_of_many_columns.rs"]
mod three_of_many_columns;

#[test]
fn arrow_reads_three_of_ten_thousand_columns() {
    three_of_many_columns::main().unwrap();
}

#[test]
fn an_asynchronous_client_opens_footers_and_page_indexes() {
    object_store::main().unwrap();
}
