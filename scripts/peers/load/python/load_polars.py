"""Appends the files below a folder to a table with polars."""

import json
import os
import sys

import polars

frame = polars.read_parquet(sys.argv[1] + "/*.parquet")
frame.write_database(
    os.environ["SAWMILL_BENCH_TABLE"],
    connection=os.environ["SAWMILL_BENCH_URL"],
    engine="adbc",
    if_table_exists="append",
)
print(json.dumps({"versions": {"polars": polars.__version__}}))
