#!/usr/bin/env python3
"""Small Parquet files by other writers, for the tests of the footer decoder and of loads.

    pip install pyarrow duckdb polars fastparquet
    python scripts/peers/files/fixtures.py fixtures/foreign

Skips writers that are not installed, with a message. Every file has some hundred rows of invented numbers and
text; its name states the writer and what is unusual about it. Beside the directory, hive has folders such as
year=2019, whose names contain columns, and taxi.parquet has 5,000 invented trips with the columns and types of
New York's taxi files.
"""

import datetime
import decimal
import importlib
import pathlib
import random
import sys

ROWS = 300


def columns():
    rows = range(ROWS)
    return {
        "id": [i * 7919 % 100_003 for i in rows],
        "maybe": [None if i % 3 == 0 else i - 150 for i in rows],
        "price": [i / 8 for i in rows],
        "name": [f"name {i % 17}" if i % 5 else None for i in rows],
        "unique": [f"row {i:05} of these" for i in rows],
        "flag": [i % 2 == 0 for i in rows],
        "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in rows],
        "at": [datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=i * 61) for i in rows],
        "nothing": [None for _ in rows],
    }


def by_pyarrow(directory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = columns()
    made["nothing"] = pa.nulls(ROWS, pa.int32())
    table = pa.table(made)
    nested = pa.table(
        {
            "tags": [[f"t{j}" for j in range(i % 4)] if i % 7 else None for i in range(ROWS)],
            "place": [{"city": f"c{i % 9}", "at": {"x": i / 2, "y": -i}} for i in range(ROWS)],
            "marks": pa.array(
                [[(f"k{j}", j) for j in range(i % 3)] for i in range(ROWS)], pa.map_(pa.string(), pa.int64())
            ),
            "amount": pa.array([decimal.Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(9, 2)),
            "small": pa.array([i % 100 for i in range(ROWS)], pa.uint8()),
            "fixed": pa.array([bytes([i % 256] * 6) for i in range(ROWS)], pa.binary(6)),
            "half": pa.array([float(i) for i in range(ROWS)], pa.float16()),
            "zoned": pa.array([i * 10**9 for i in range(ROWS)], pa.timestamp("ns", "UTC")),
        }
    )
    write = lambda name, table, **options: pq.write_table(table, directory / f"pyarrow_{name}.parquet", **options)
    write("plain", table, row_group_size=100)
    write("nested", nested, row_group_size=128, compression="zstd", write_page_index=True)
    write("v1_int96", table, version="1.0", use_deprecated_int96_timestamps=True, compression="gzip")
    write("page_v2", table, data_page_version="2.0", use_dictionary=False, compression="none", write_page_index=True)
    write("no_statistics", table, write_statistics=False, store_schema=False, row_group_size=64)
    write(
        "sorted",
        table.sort_by("id"),
        sorting_columns=[pq.SortingColumn(0)],
        column_encoding={"id": "DELTA_BINARY_PACKED", "unique": "DELTA_BYTE_ARRAY"},
        use_dictionary=["name"],
        write_page_checksum=True,
    )
    write("empty", table.slice(0, 0))
    hive_folders(directory.parent / "hive")
    taxi(directory.parent / "taxi.parquet")


def hive_folders(directory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = range(60)
    table = pa.table(
        {
            "id": list(rows),
            "year": [2019 + i % 2 for i in rows],
            "month": [["01", "12"][i // 2 % 2] for i in rows],
            "region": [["Île/de France=1 %", "north", None][i % 3] for i in rows],
            "day": [datetime.date(2024, 2, 28) + datetime.timedelta(days=i % 2) for i in rows],
        }
    )
    pq.write_to_dataset(
        table,
        str(directory),
        partition_cols=["year", "month", "region", "day"],
        basename_template="part-{i}.parquet",
        existing_data_behavior="delete_matching",
    )


def taxi(path, rows=5_000):
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = random.Random(20240101)
    known = [draw.random() > 0.047 for _ in range(rows)]  # five columns are null together
    start = datetime.datetime(2024, 1, 1)
    pickup = [start + datetime.timedelta(seconds=i * 267 + draw.randrange(-900, 900)) for i in range(rows)]
    miles = [round(draw.lognormvariate(0.62, 0.95), 2) for _ in range(rows)]
    minutes = [distance * 4 * draw.lognormvariate(0.1, 0.35) + 2 for distance in miles]
    fare = [round(3 + distance * 1.75 + minute * 0.5, 1) for distance, minute in zip(miles, minutes)]
    fare = [-amount if draw.random() < 0.013 else amount for amount in fare]
    paid = [draw.choices([1, 2, 3, 4], [82, 16, 1, 1])[0] if is_known else 0 for is_known in known]
    tip = [round(amount * 0.2, 2) if by == 1 and amount > 0 else 0.0 for amount, by in zip(fare, paid)]
    extra = draw.choices([0.0, 1.0, 2.5, 5.0, -1.0], [42, 22, 24, 11, 1], k=rows)
    tolls = draw.choices([0.0, 6.94], [92, 8], k=rows)
    tax = [-0.5 if amount < 0 else 0.5 for amount in fare]
    surcharge = [-1.0 if amount < 0 else 1.0 for amount in fare]
    amounts = [fare, extra, tax, tip, tolls, surcharge]

    def where_known(values, type):
        return pa.array([value if is_known else None for value, is_known in zip(values, known)], type)

    table = pa.table(
        {
            "VendorID": pa.array(draw.choices([1, 2, 6], [246, 753, 1], k=rows), pa.int32()),
            "tpep_pickup_datetime": pa.array(pickup, pa.timestamp("us")),
            "tpep_dropoff_datetime": pa.array(
                [at + datetime.timedelta(seconds=int(60 * minute)) for at, minute in zip(pickup, minutes)], pa.timestamp("us")
            ),
            "passenger_count": where_known(draw.choices(range(7), [1, 76, 14, 3, 2, 1, 3], k=rows), pa.int64()),
            "trip_distance": pa.array(miles),
            "RatecodeID": where_known(draw.choices([1, 2, 5, 99], [94, 4, 1, 1], k=rows), pa.int64()),
            "store_and_fwd_flag": where_known(draw.choices("NY", [996, 4], k=rows), pa.large_string()),
            "PULocationID": pa.array([int(draw.triangular(1, 264, 150)) for _ in range(rows)], pa.int32()),
            "DOLocationID": pa.array([draw.randrange(1, 264) for _ in range(rows)], pa.int32()),
            "payment_type": pa.array(paid, pa.int64()),
            "fare_amount": pa.array(fare),
            "extra": pa.array(extra),
            "mta_tax": pa.array(tax),
            "tip_amount": pa.array(tip),
            "tolls_amount": pa.array(tolls),
            "improvement_surcharge": pa.array(surcharge),
            "total_amount": pa.array([round(sum(parts), 2) for parts in zip(*amounts)]),
            "congestion_surcharge": where_known(draw.choices([2.5, 0.0], [92, 8], k=rows), pa.float64()),
            "Airport_fee": where_known(draw.choices([1.75, 0.0], [8, 92], k=rows), pa.float64()),
        }
    )
    pq.write_table(table, path, row_group_size=900, compression="zstd")


def by_duckdb(directory):
    import duckdb
    import pyarrow as pa

    made = columns()
    made["nothing"] = pa.nulls(ROWS, pa.int32())
    source = pa.table(made)
    connection = duckdb.connect()
    connection.register("source", source)
    to = lambda name, options, query="select * from source": connection.execute(
        f"copy ({query}) to '{directory}/duckdb_{name}.parquet' (format parquet{options})"
    )
    to("plain", "")
    to("row_groups", ", row_group_size 100, codec zstd")
    to("v2", ", parquet_version v2")
    to("nested", "", "select id, [id, id + 1] as pair, {'a': name, 'b': flag} as s, uuid() as u, id::hugeint as h from source")
    # INTERVAL in 12 bytes, with all three parts.
    interval = "to_months((id % 30)::int) + to_days((id % 40)::int) + to_milliseconds(id * 61001)"
    to(
        "intervals",
        "",
        f"select id, case when id % 7 <> 3 then {interval} end as pause, [{interval}, null] as waits from source order by id",
    )


def by_polars(directory):
    import polars as pl

    made = columns()
    frame = pl.DataFrame(made, strict=False)
    frame.write_parquet(directory / "polars_plain.parquet")
    frame.write_parquet(directory / "polars_full.parquet", statistics="full", row_group_size=100, compression="snappy")
    frame.select(
        pl.struct("id", "name").alias("both"), pl.concat_list("id", "maybe").alias("list"), pl.col("name").cast(pl.Categorical)
    ).write_parquet(directory / "polars_nested.parquet", statistics=False)


def by_fastparquet(directory):
    import fastparquet
    import pandas

    made = columns()
    # fastparquet cannot write dates or columns without a type.
    made.pop("nothing"), made.pop("day")
    made["at"] = pandas.to_datetime(made["at"])
    frame = pandas.DataFrame(made)
    fastparquet.write(str(directory / "fastparquet_plain.parquet"), frame, row_group_offsets=100)
    fastparquet.write(str(directory / "fastparquet_int96.parquet"), frame, times="int96", compression="GZIP", stats=True)


def main():
    directory = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "fixtures/foreign")
    directory.mkdir(parents=True, exist_ok=True)
    failed = False
    for writer, make in [
        ("pyarrow", by_pyarrow),
        ("duckdb", by_duckdb),
        ("polars", by_polars),
        ("fastparquet", by_fastparquet),
    ]:
        try:
            version = getattr(importlib.import_module(writer), "__version__", "?")
        except ImportError as error:
            print(f"{writer}: skipped, {error}")
            continue
        try:
            make(directory)
            print(f"{writer} {version}: done")
        except Exception as error:
            failed = True
            print(f"{writer} {version}: {error!r}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
