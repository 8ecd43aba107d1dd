#!/usr/bin/env python3
"""Parquet files by other writers whose footers are worth measuring, for benches/footer_foreign.rs.

    pip install pyarrow duckdb polars fastparquet tpchgen-cli
    python scripts/peers/files/foreign_footers.py DIRECTORY [WORDS]     only the files whose names contain a word

Skips writers that are not installed, with a message. A name states the writer, what is in the file, and its
row groups x columns. Values are few: a footer depends on the number of row groups and columns, on types,
codecs, encodings and statistics, and hardly on how many rows there are.
"""

import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

WORDS = sys.argv[2:]
CODECS = ["snappy", "zstd", "gzip", "none"]


def wanted(name):
    return not WORDS or any(word in name for word in WORDS)


def by_pyarrow(directory):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(1)

    def types():
        """14 types; each is a function of the rows of a row group and a number that varies."""
        ints = lambda rows, span: draw.integers(0, max(span, 2), rows)
        text = lambda rows, span: pa.array([f"value {i:0{8 + span % 40}}" for i in ints(rows, span)])
        return [
            lambda r, s: pa.array(ints(r, s).astype("int32")),
            lambda r, s: pa.array(ints(r, s).astype("int64") * 1_000_003),
            lambda r, s: pa.array(ints(r, s).astype("float32") / 7),
            lambda r, s: pa.array(ints(r, s).astype("float64") / 7),
            lambda r, s: pa.array(ints(r, s) % 2 == 0),
            text,
            lambda r, s: text(r, s).cast(pa.binary()),
            lambda r, s: pa.array([int(i).to_bytes(16, "little") for i in ints(r, s)], pa.binary(16)),
            lambda r, s: pa.array(ints(r, s).astype("int32")).cast(pa.date32()),
            lambda r, s: pa.array(ints(r, s).astype("int64") * 1000).cast(pa.timestamp("us", "UTC")),
            lambda r, s: pa.array(ints(r, s).astype("int32") % 86_400_000).cast(pa.time32("ms")),
            lambda r, s: pa.array(ints(r, s).astype("int64")).cast(pa.decimal128(21, 2)),
            lambda r, s: pa.array(ints(r, s).astype("uint8")),
            lambda r, s: pa.array((ints(r, s) % 60_000).astype("float16")),
        ]

    def with_nulls(array, every):
        mask = pa.array(np.arange(len(array)) % every != 0)
        return pa.compute.if_else(mask, array, pa.scalar(None, array.type))

    def mixed(name, row_groups, columns, rows=24, codecs=CODECS, page_index=False, **options):
        """All types in turn; codecs, nulls, and whether chunks fall back from dictionaries vary."""
        if not wanted(name):
            return
        makers = types()
        names = [f"c{column:05}_{'x' * (column % 13)}" for column in range(columns)]
        # A few tables for all row groups: making values takes longer than writing them.
        tables = []
        for kind in range(7):
            arrays = []
            for column in range(columns):
                varied = [3, 1000, 10, 1_000_000, 100, 8, 30][(kind + column) % 7]
                array = makers[column % len(makers)](rows, varied)
                if column % 3 and (kind + column // 3) % 4 != 0:
                    array = with_nulls(array, 5 + kind)
                arrays.append(array)
            tables.append(pa.table(arrays, names))
        writer = pq.ParquetWriter(
            directory / f"{name}.parquet",
            tables[0].schema,
            compression={each: codecs[(i + i // 14) % len(codecs)] for i, each in enumerate(names)},
            use_dictionary=[each for i, each in enumerate(names) if i % 4],
            dictionary_pagesize_limit=80,
            data_page_size=64,
            write_batch_size=8,
            write_page_index=page_index,
            **options,
        )
        for group in range(row_groups):
            writer.write_table(tables[(group * 5 + group // 7) % 7])
        writer.close()

    def uniform(name, row_groups, columns, rows=10, **options):
        if not wanted(name):
            return
        table = pa.table({f"column_{i:05}": draw.random(rows).astype("float32") for i in range(columns)})
        writer = pq.ParquetWriter(directory / f"{name}.parquet", table.schema, use_dictionary=False, **options)
        for _ in range(row_groups):
            writer.write_table(table)
        writer.close()

    def nested(name, row_groups, leaves, maps):
        """Structs, lists, lists of structs, and maps in turn, until there are that many leaves."""
        if not wanted(name):
            return
        rows, fields, count = 12, {}, 0
        while count < leaves:
            kind, at = len(fields) % (4 if maps else 3), len(fields)
            if kind == 0:
                values = [{"x": i, "y": f"y{i * at}", "z": {"w": i / 3}} for i in range(rows)]
                count += 3
            elif kind == 1:
                values, count = [list(range(i % 4)) if i % 5 else None for i in range(rows)], count + 1
            elif kind == 2:
                values, count = [[{"k": j, "v": f"v{j}"} for j in range(i % 3)] for i in range(rows)], count + 2
            else:
                values = pa.array([[(f"k{j}", j * at) for j in range(i % 3)] for i in range(rows)], pa.map_(pa.string(), pa.int64()))
                count += 2
            fields[f"field_{at:03}"] = values
        table = pa.table(fields)
        writer = pq.ParquetWriter(directory / f"{name}.parquet", table.schema, compression="zstd")
        for _ in range(row_groups):
            writer.write_table(table)
        writer.close()

    mixed("pyarrow_mixed_1x20", 1, 20)
    mixed("pyarrow_mixed_1x10", 1, 10)
    mixed("pyarrow_mixed_2x30", 2, 30)
    mixed("pyarrow_mixed_5x50", 5, 50)
    # Between small and large: few row groups, or few columns.
    mixed("pyarrow_mixed_4x20", 4, 20)
    mixed("pyarrow_mixed_10x60", 10, 60)
    mixed("pyarrow_mixed_75x8", 75, 8)
    mixed("pyarrow_mixed_100x13", 100, 13)
    mixed("pyarrow_mixed_18x100", 18, 100)
    mixed("pyarrow_mixed_1x1800", 1, 1800)
    mixed("pyarrow_pages_600x20", 600, 20, page_index=True)
    uniform("pyarrow_uniform_1x1800", 1, 1800)
    nested("pyarrow_nested_8x60", 8, 60, True)
    nested("pyarrow_nested_72x25", 72, 25, True)
    mixed("pyarrow_one_codec_500x100", 500, 100, codecs=["zstd"])
    mixed("pyarrow_mixed_codecs_500x400", 500, 400)
    mixed("pyarrow_mixed_codecs_5000x40", 5000, 40)
    mixed("pyarrow_some_statistics_300x60", 300, 60, write_statistics=[f"c{i:05}_{'x' * (i % 13)}" for i in range(0, 60, 3)])
    mixed("pyarrow_pages_300x40", 300, 40, codecs=["zstd"], page_index=True)
    mixed("pyarrow_pages_codecs_500x40", 500, 40, page_index=True)
    mixed("pyarrow_pages_5x20", 5, 20, page_index=True)
    uniform("pyarrow_pages_uniform_3000x20", 3000, 20, write_page_index=True)
    uniform("pyarrow_uniform_20x10000", 20, 10_000)
    nested("pyarrow_nested_379x100", 379, 100, False)
    nested("pyarrow_nested_1327x60", 1327, 60, False)
    nested("pyarrow_nested_maps_1500x60", 1500, 60, True)
    if wanted("pyarrow_taxi_3x19"):
        # The repository's taxi rows, in as many row groups as a month of trips has.
        table = pq.read_table(pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "taxi.parquet")
        pq.write_table(table, directory / "pyarrow_taxi_3x19.parquet", row_group_size=1_700, compression="zstd", write_page_index=True)


def by_duckdb(directory):
    import duckdb

    connection = duckdb.connect()
    connection.execute("set threads = 1")

    def copy(name, query, row_group, codec="snappy"):
        if wanted(name):
            connection.execute(f"copy ({query}) to '{directory}/{name}.parquet' (format parquet, row_group_size {row_group}, codec {codec})")

    kinds = ["i::int", "i::bigint * 7", "i / 3.0", "'text ' || (i % {n})", "i % 2 = 0", "date '2020-01-01' + (i % {n})::int", "case when i % 3 = 0 then i end"]
    # A comparison is a BOOLEAN: of them alone is no dictionary made.
    columns = lambda count: ", ".join(f"{kinds[c % 7].format(n=c + 2)} as column_{c:03}" for c in range(count))
    copy("duckdb_40x300", f"select {columns(300)} from range(81920) t(i)", 2048)
    copy("duckdb_1x20", f"select {columns(20)} from range(5000) t(i)", 100_000)
    copy("duckdb_5x20", f"select {columns(20)} from range(10240) t(i)", 2048)
    copy("duckdb_6x100", f"select {columns(100)} from range(12288) t(i)", 2048)
    copy("duckdb_30x19", f"select {columns(19)} from range(61440) t(i)", 2048, "zstd")
    copy("duckdb_3x19", f"select {columns(19)} from range(6144) t(i)", 2048, "zstd")


def by_polars(directory):
    import polars as pl

    def write(name, columns, rows, row_group):
        if not wanted(name):
            return
        makers = [
            lambda c: pl.Series([i * c for i in range(rows)]),
            lambda c: pl.Series([i / (c + 1) for i in range(rows)]),
            lambda c: pl.Series([f"text {i % (c + 2)}" for i in range(rows)]),
            lambda c: pl.Series([i % 2 == 0 for i in range(rows)]),
            lambda c: pl.Series([None if i % 3 else i for i in range(rows)]),
        ]
        frame = pl.DataFrame({f"column_{c:03}": makers[c % 5](c) for c in range(columns)})
        frame.write_parquet(directory / f"{name}.parquet", row_group_size=row_group, statistics="full")

    write("polars_50x400", 400, 2_000, 40)
    write("polars_100x13", 13, 4_000, 40)
    write("polars_3x300", 300, 120, 40)
    write("polars_5x20", 20, 200, 40)
    write("polars_1x20", 20, 500, 1_000)


def by_fastparquet(directory):
    import fastparquet
    import pandas

    def write(name, columns, row_groups):
        if not wanted(name):
            return
        rows = row_groups * 10
        makers = [
            lambda c: range(c, rows + c),
            lambda c: [i / (c + 1) for i in range(rows)],
            lambda c: [f"text {i % (c + 2)}" for i in range(rows)],
            lambda c: [i % 2 == 0 for i in range(rows)],
        ]
        frame = pandas.DataFrame({f"column_{c:03}": makers[c % 4](c) for c in range(columns)})
        fastparquet.write(str(directory / f"{name}.parquet"), frame, row_group_offsets=10, stats=True)

    write("fastparquet_100x40", 40, 100)
    write("fastparquet_1x12", 12, 1)


def by_tpchgen(directory):
    """TPC-H's lineitem in about as many row groups as scale factor 1 has by default."""
    program = shutil.which("tpchgen-cli") or shutil.which("tpchgen-cli", path=pathlib.Path(sys.executable).parent)
    if not program or not wanted("tpch_lineitem"):
        return
    with tempfile.TemporaryDirectory() as made:
        options = ["--scale-factor=0.1", "--tables=lineitem", "--row-group-bytes=740KB", f"--output-dir={made}"]
        subprocess.run([program, "parquet", *options], check=True, stdout=subprocess.DEVNULL)
        (found,) = pathlib.Path(made).rglob("lineitem*.parquet")
        shutil.copy(found, directory / "tpch_lineitem.parquet")


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    random.seed(1)
    for make in [by_pyarrow, by_duckdb, by_polars, by_fastparquet, by_tpchgen]:
        try:
            make(directory)
            print(f"{make.__name__}: done", flush=True)
        except ImportError as error:
            print(f"{make.__name__}: skipped, {error}", flush=True)


if __name__ == "__main__":
    main()
