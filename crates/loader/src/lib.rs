//! Loads Parquet into database servers.
