"""Appends the files below a folder to a table: pgpq encodes binary COPY, psycopg sends it."""

import json
import os
import sys
from importlib.metadata import version

import psycopg
import pyarrow.dataset
from pgpq import ArrowToPostgresBinaryEncoder

rows = pyarrow.dataset.dataset(sys.argv[1], format="parquet")
encoder = ArrowToPostgresBinaryEncoder(rows.schema)
table = os.environ["SAWMILL_BENCH_TABLE"]
with psycopg.connect(os.environ["SAWMILL_BENCH_URL"]) as connection, connection.cursor() as cursor:
    with cursor.copy(f"COPY {table} FROM STDIN WITH (FORMAT binary)") as copy:
        copy.write(encoder.write_header())
        for batch in rows.to_batches():
            copy.write(encoder.write_batch(batch))
        copy.write(encoder.finish())
print(json.dumps({"versions": {"pgpq": version("pgpq"), "psycopg": version("psycopg")}}))
