"""Writes the files below a folder to one Arrow file."""

import sys

import pyarrow
import pyarrow.dataset

rows = pyarrow.dataset.dataset(sys.argv[1], format="parquet")
with pyarrow.OSFile(sys.argv[2], "wb") as file, pyarrow.ipc.new_file(file, rows.schema) as writer:
    for batch in rows.to_batches():
        writer.write(batch)
