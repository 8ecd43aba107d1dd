"""Makes the rows of sales.toml with a general tool: gen_flat.py duckdb|polars|pyarrow ROWS FOLDER.

Snappy and row groups of 131,072 rows, as sawmill's. polars and pyarrow draw with numpy, which is their users' way.
"""

import json
import sys

GROUP = 131_072
STATUSES = ["open", "paid", "returned", "shipped"]


def duckdb(rows, path):
    import duckdb

    duckdb.sql(f"""
        COPY (SELECT range AS id,
                     1 + (random() * 999999)::BIGINT AS customer,
                     1 + (random() * 99)::INTEGER AS quantity,
                     random() * 1000 AS amount,
                     random() < 0.25 AS express,
                     ['open', 'paid', 'returned', 'shipped'][1 + (random() * 3.999999 - 0.5)::INTEGER] AS status,
                     DATE '2023-01-01' + (random() * 730)::INTEGER AS day,
                     format('SKU-{{:09}}', range) AS article
              FROM range({rows}))
        TO '{path}' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {GROUP})""")
    return {"DuckDB": duckdb.__version__}


def drawn(rows, start, rng):
    """Columns by numpy."""
    import numpy

    return {
        "id": numpy.arange(start, start + rows, dtype="int64"),
        "customer": rng.integers(1, 1_000_001, rows, dtype="int64"),
        "quantity": rng.integers(1, 101, rows, dtype="int32"),
        "amount": rng.random(rows) * 1000,
        "express": rng.random(rows) < 0.25,
        "status": rng.integers(0, 4, rows, dtype="int8"),
        "day": rng.integers(19_358, 20_089, rows, dtype="int32"),
    }


def polars(rows, path):
    import numpy
    import polars

    columns = drawn(rows, 0, numpy.random.default_rng(42))
    frame = polars.DataFrame(columns).with_columns(
        polars.col("status").cast(polars.UInt32).replace_strict(dict(enumerate(STATUSES)), return_dtype=polars.String),
        polars.col("day").cast(polars.Date),
        ("SKU-" + polars.col("id").cast(polars.String).str.zfill(9)).alias("article"),
    )
    frame.write_parquet(path, compression="snappy", row_group_size=GROUP)
    return {"polars": polars.__version__, "numpy": numpy.__version__}


def pyarrow(rows, path):
    import numpy
    import pyarrow
    import pyarrow.compute as compute
    import pyarrow.parquet

    rng, writer = numpy.random.default_rng(42), None
    for start in range(0, rows, GROUP):
        columns = drawn(min(GROUP, rows - start), start, rng)
        arrays = {name: pyarrow.array(values) for name, values in columns.items()}
        arrays["status"] = pyarrow.DictionaryArray.from_arrays(arrays["status"], STATUSES).cast(pyarrow.string())
        arrays["day"] = arrays["day"].cast(pyarrow.date32())
        digits = compute.utf8_lpad(arrays["id"].cast(pyarrow.string()), 9, "0")
        arrays["article"] = compute.binary_join_element_wise("SKU-", digits, "")
        table = pyarrow.table(arrays)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema, compression="snappy")
        writer.write_table(table, row_group_size=GROUP)
    writer.close()
    return {"pyarrow": pyarrow.__version__, "numpy": numpy.__version__}


if __name__ == "__main__":
    tool, rows, folder = sys.argv[1:]
    versions = {"duckdb": duckdb, "polars": polars, "pyarrow": pyarrow}[tool](int(rows), f"{folder}/sales.parquet")
    print(json.dumps({"versions": versions}))
