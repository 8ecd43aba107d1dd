"""Appends a CSV file, or the Parquet files below a folder, to a table with DuckDB's postgres extension."""

import json
import os
import sys

import duckdb

duckdb.execute("load postgres")
duckdb.execute(f"attach '{os.environ['SAWMILL_BENCH_URL']}' as server (type postgres)")
table, path = os.environ["SAWMILL_BENCH_TABLE"], sys.argv[1]
rows = f"read_csv('{path}')" if path.endswith(".csv") else f"read_parquet('{path}/*.parquet')"
duckdb.execute(f"insert into server.public.{table} select * from {rows}")
print(json.dumps({"versions": {"DuckDB": duckdb.__version__}}))
