"""Appends the files below a folder to a table through ADBC."""

import json
import os
import sys
from importlib.metadata import version

import adbc_driver_postgresql.dbapi as postgresql
import pyarrow.dataset

batches = pyarrow.dataset.dataset(sys.argv[1], format="parquet").scanner().to_reader()
with postgresql.connect(os.environ["SAWMILL_BENCH_URL"]) as connection, connection.cursor() as cursor:
    cursor.adbc_ingest(os.environ["SAWMILL_BENCH_TABLE"], batches, mode="append")
    connection.commit()
print(json.dumps({"versions": {"adbc-driver-postgresql": version("adbc-driver-postgresql")}}))
