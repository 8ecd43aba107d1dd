"""Appends the files below a folder to a table with DuckDB's postgres extension."""

import json
import os
import sys

import duckdb

duckdb.execute("load postgres")
duckdb.execute(f"attach '{os.environ['SAWMILL_BENCH_URL']}' as server (type postgres)")
table = os.environ["SAWMILL_BENCH_TABLE"]
duckdb.execute(f"insert into server.public.{table} select * from read_parquet('{sys.argv[1]}/*.parquet')")
print(json.dumps({"versions": {"DuckDB": duckdb.__version__}}))
