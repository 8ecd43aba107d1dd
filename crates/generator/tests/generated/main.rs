//! Rows and files of specs, in one program: what the generator promises.

mod files {
    mod pruning;
    mod read_back;
    mod same_bytes;
}
mod specs {
    mod documented_spec;
    mod inferred_specs;
    mod random_specs;
}
mod tables {
    mod change_streams;
    mod keys_and_order;
    mod several_tables;
    mod tpcds;
    mod tpch;
}
mod values {
    mod computed_values;
    mod correlations;
    mod distributions;
    mod locales;
    mod misfits;
    mod seasons;
}
