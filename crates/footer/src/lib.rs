//! Parquet footers, decoded into flat metadata.
