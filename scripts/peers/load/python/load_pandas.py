"""Appends the files below a folder to a table with pandas."""

import json
import os
import sys

import pandas
import sqlalchemy

frame = pandas.read_parquet(sys.argv[1], dtype_backend="pyarrow")
url = "postgresql+psycopg2://" + os.environ["SAWMILL_BENCH_URL"].split("://", 1)[1]
engine = sqlalchemy.create_engine(url)
frame.to_sql(os.environ["SAWMILL_BENCH_TABLE"], engine, if_exists="append", index=False, method="multi", chunksize=1000)
print(json.dumps({"versions": {"pandas": pandas.__version__}}))
