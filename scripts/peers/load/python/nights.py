"""Writes the file of a night into a folder: nights.py FOLDER NIGHT."""

import pathlib
import sys

import numpy
import pyarrow
import pyarrow.parquet

ROWS = 100_000


def write(folder: pathlib.Path, number: int, night: int, seed: int) -> None:
    """The file `number`, with the columns that there are in `night`."""
    draw = numpy.random.default_rng(seed)
    first = number * ROWS
    columns = {
        "id": pyarrow.array(numpy.arange(first, first + ROWS), pyarrow.int32() if night < 5 else pyarrow.int64()),
        "at": pyarrow.array(1_700_000_000_000_000 + draw.integers(0, 10**12, ROWS), pyarrow.timestamp("us")),
        "name": pyarrow.array([f"name {name}" for name in draw.integers(0, 10**6, ROWS)]),
        "fare": pyarrow.array(draw.random(ROWS)),
        "tip": pyarrow.array(draw.random(ROWS)),
        "kind": pyarrow.array(draw.integers(0, 1000, ROWS), pyarrow.int32()),
    }
    if night >= 4:
        columns["region"] = pyarrow.array([f"r{region}" for region in draw.integers(0, 50, ROWS)])
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{number:02}.parquet")


folder, night = pathlib.Path(sys.argv[1]), int(sys.argv[2])
write(folder, night, night, night)
if night == 8:
    write(folder, 3, night, 1003)
