//! Datasets of nested records, written as Parquet.
