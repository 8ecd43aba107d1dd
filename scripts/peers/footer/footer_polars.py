"""Counts the rows of all files below a folder; polars reads only their footers for this."""

import json
import sys

import polars

rows = polars.scan_parquet(sys.argv[1] + "/**/*.parquet").select(polars.len()).collect().item()
print(json.dumps({"rows": rows, "versions": {"polars": polars.__version__}}))
