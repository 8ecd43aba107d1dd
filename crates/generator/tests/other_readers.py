"""Files of `sawmill gen`, written in every way, read by pyarrow and DuckDB.

    other_readers.py SAWMILL

Each dataset is written once with the default options; both readers must find the same rows in every
other way to write it. Of every file the footer is held against the values: null counts, least and
greatest values, sizes, the offsets of the page index, and Bloom filters that hit. Ends with the number
of files that were read.
"""

import glob
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

try:
    import duckdb
except ImportError:
    duckdb = None
    print("skipped: no duckdb")

ROWS = 3000

# A dataset of flat columns, for the checks that need the values of a column as they are.
FLAT = """
name = "flat"
fields = [
  { name = "id", type = "int64", values = { sequence = { start = -5, step = 3 } } },
  { name = "small", type = "int32", nulls = 0.2, values = { zipf = { n = 500, s = 1.1 } } },
  { name = "natural", type = "uint32", values = { uniform = { min = 0, max = 4294967295 } } },
  { name = "ratio", type = "float", nulls = 0.1, values = { normal = { mean = 0, stddev = 3 } } },
  { name = "price", type = "double", values = { lognormal = { median = 9, sigma = 1 } } },
  { name = "flag", type = "boolean", nulls = 0.5, values = { weights = { true = 1, false = 1 } } },
  { name = "day", type = "date", values = { uniform = { min = 2000-01-01, max = 2030-12-31 } } },
  { name = "at", type = "timestamp", values = { walk = { start = 2024-01-01T00:00:00, step = "1s" } } },
  { name = "word", type = "string", nulls = 0.3, values = { words = { min = 0, max = 3 } } },
  { name = "kind", type = "string", values = { weights = { a = 1, b = 2, "long kind" = 3 } } },
  { name = "key", type = "string", values = { unique = "k-{id:08}" } },
  { name = "code", type = "fixed_binary", width = 6, values = "bytes" },
  { name = "sum", type = "decimal", precision = 9, scale = 2, values = { uniform = { min = -99.99, max = 99.99 } } },
  { name = "nothing", type = "int32", nulls = 1, values = { constant = 1 } },
]
"""

# Types that Arrow's readers know by the Arrow schema in the footer, or as bytes.
OTHER_TYPES = """
name = "types"
fields = [
  { name = "took", type = "duration", nulls = 0.2, values = { uniform = { min = "1ms", max = "3h" } } },
  { name = "waits", type = "duration", unit = "ns", values = { constant = "250ms" } },
  { name = "term", type = "interval", nulls = 0.1, values = { uniform = { min = "1d", max = "2y 2mo 3d 4h" } } },
  { name = "vector", type = "list", size = 8, element = { type = "float", values = { normal = { mean = 0, stddev = 1 } } } },
  { name = "pairs", type = "list", nulls = 0.3, size = 2, element = { type = "int32", nulls = 0.1, values = { uniform = { min = 0, max = 9 } } } },
  { name = "place", type = "geometry", nulls = 0.2, values = { point = { x = [-180, 180], y = [-90, 90] } } },
  { name = "area", type = "geometry", values = { polygon = { x = [0, 1000], y = [0, 1000], radius = 40, corners = 6 } } },
]
"""
# Columns whose values have no order, so no bounds.
UNORDERED = {"term", "place", "area"}

ENCODINGS = ["plain", "dict", "delta", "delta-length", "delta-bytearray", "byte-stream-split"]
CODECS = ["none", "snappy", "lz4", "zstd", "gzip", "brotli"]


def generate(sawmill, dataset, directory, options):
    command = [sawmill, "gen", dataset, "--rows", str(ROWS), "--row-group-rows", "2000", "--page-rows", "700"]
    command += ["--files", "2", "--out", directory, "--json"] + options
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        if "no column can be encoded" in ran.stderr:
            return None
        raise SystemExit(f"{' '.join(command)}\n{ran.stderr}")
    return [file["path"] for file in json.loads(ran.stdout)["files"]]


def arrow_rows(files):
    # NaN is equal to itself here, which it is not in a comparison of tables.
    return pa.concat_tables([pq.ParquetFile(file).read() for file in files])


def same(one, other):
    if one.schema != other.schema or one.num_rows != other.num_rows:
        return False
    return one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())


def duck_rows(files):
    """The number of rows and a sum of their hashes."""
    return duckdb.execute("SELECT count(*), sum(hash(t)::HUGEINT) FROM read_parquet(?) t", [files]).fetchall()


def check_footer(file, options):
    """What the footer says of flat columns, against their values."""
    metadata = pq.ParquetFile(file)
    size = os.path.getsize(file)
    statistics_written = "none" not in [v for k, v in zip(options, options[1:]) if k == "--statistics"]
    end = 4
    for group in range(metadata.num_row_groups):
        table = metadata.read_row_group(group)
        info = metadata.metadata.row_group(group)
        assert info.num_rows == table.num_rows, file
        total = 0
        for index in range(info.num_columns):
            column = info.column(index)
            total += column.total_uncompressed_size
            first = column.dictionary_page_offset or column.data_page_offset
            assert first >= end and first + column.total_compressed_size <= size, (file, column)
            end = first + column.total_compressed_size
            assert column.has_offset_index == ("no" not in options), (file, column)
            if "." in column.path_in_schema:
                continue
            values = table[column.path_in_schema]
            assert column.num_values == len(values), (file, column)
            statistics = column.statistics
            assert (statistics is not None) == statistics_written, (file, column)
            if statistics is None:
                continue
            assert statistics.null_count == values.null_count, (file, column, values.null_count)
            if values.null_count == len(values):
                assert not statistics.has_min_max, (file, column)
            elif statistics.has_min_max:
                if isinstance(values.type, pa.BaseExtensionType):
                    values = pa.chunked_array([chunk.storage for chunk in values.chunks])
                if pa.types.is_duration(values.type):
                    # The column is a number; only the Arrow schema makes it a duration.
                    values = values.cast(pa.int64())
                bounds = pc.min_max(values.filter(pc.is_valid(values))).as_py()
                low, high = statistics.min, statistics.max
                if isinstance(bounds["min"], float):
                    assert math.isclose(low, bounds["min"]) and math.isclose(high, bounds["max"]), (file, column)
                else:
                    assert (low, high) == (bounds["min"], bounds["max"]), (file, column, bounds)
            elif column.path_in_schema not in UNORDERED:
                raise SystemExit(f"{file}: no bounds of {column.path_in_schema}")
        assert info.total_byte_size == total, (file, info)


def check_blooms(sawmill, spec, directory):
    """Every value hits, and few that are not there do."""
    columns = ["id", "small", "price", "word", "kind", "key", "code", "day"]
    options = [o for column in columns for o in ("--bloom", f"{column}:0.01")]
    files = generate(sawmill, spec, directory, options + ["--compression", "snappy"])
    for file in files:
        table = pq.read_table(file)
        for column, values in [("id", table["id"]), ("key", table["key"]), ("small", table["small"])]:
            for value in values.filter(pc.is_valid(values)).unique().to_pylist()[:200]:
                probe = "SELECT bool_or(NOT bloom_filter_excludes) FROM parquet_bloom_probe(?, ?, ?)"
                assert duckdb.execute(probe, [file, column, value]).fetchone()[0], (file, column, value)
        probe = "SELECT bool_or(NOT bloom_filter_excludes) FROM parquet_bloom_probe(?, 'key', ?)"
        hits = sum(duckdb.execute(probe, [file, f"no key {i}"]).fetchone()[0] for i in range(300))
        assert hits <= 30, f"{file}: {hits} of 300 absent keys pass the filter"
        sizes = "SELECT count(bloom_filter_length) FROM parquet_metadata(?) WHERE bloom_filter_length > 0"
        groups = pq.ParquetFile(file).num_row_groups
        assert duckdb.execute(sizes, [file]).fetchone()[0] == groups * len(columns), file
    return len(files)


def check_other_types(files):
    """The types as readers see them."""
    table = arrow_rows(files)
    assert table.schema.field("took").type == pa.duration("us"), table.schema
    assert table.schema.field("waits").type == pa.duration("ns"), table.schema
    assert set(table["waits"].cast(pa.int64()).to_pylist()) == {250_000_000}
    assert table.schema.field("vector").type == pa.list_(pa.field("element", pa.float32(), nullable=False), 8), table.schema
    assert all(pair is None or len(pair) == 2 for pair in table["pairs"].to_pylist())
    if not duckdb:
        return
    counts = "SELECT count(term), count(*) FILTER (term > INTERVAL '3 years'), count(DISTINCT len(vector)) FROM read_parquet(?)"
    terms, long, lengths = duckdb.execute(counts, [files]).fetchone()
    assert 0.8 * ROWS < terms < ROWS and long == 0 and lengths == 1, (terms, long, lengths)


def check_folders(sawmill, directory):
    spec = os.path.join(directory, "flat.toml")
    out = os.path.join(directory, "folders")
    generate(sawmill, spec, out, ["--partition-by", "kind"])
    whole = pq.read_table(out, partitioning="hive")
    assert whole.num_rows == ROWS and set(whole["kind"].unique().to_pylist()) == {"a", "b", "long kind"}
    if duckdb:
        count = "SELECT count(*), count(DISTINCT kind) FROM read_parquet(?, hive_partitioning = true)"
        assert duckdb.execute(count, [out + "/*/*.parquet"]).fetchone() == (ROWS, 3)


def ways():
    """Options of every encoding, codec, page version and statistics level: encodings with each page
    version, codecs with each page version, statistics with and without page indexes, and some mixed."""
    for encoding, version in itertools.product(ENCODINGS, "12"):
        yield ["--encoding", encoding, "--data-page-version", version]
    for codec, version in itertools.product(CODECS, "12"):
        yield ["--compression", codec, "--data-page-version", version]
    for level, index in itertools.product(["none", "chunk", "page"], ["yes", "no"]):
        yield ["--statistics", level, "--page-index", index]
    for encoding, codec in zip(ENCODINGS, CODECS[1:]):
        yield ["--encoding", encoding, "--compression", codec, "--page-size", "1000", "--data-page-version", "2"]


def main():
    sawmill = sys.argv[1]
    read = 0
    with tempfile.TemporaryDirectory() as directory:
        flat = os.path.join(directory, "flat.toml")
        with open(flat, "w") as file:
            file.write(FLAT)
        types = os.path.join(directory, "types.toml")
        with open(types, "w") as file:
            file.write(OTHER_TYPES)
        for dataset in ["contacts", "orders", "events", "devices", "deep", flat, types]:
            name = os.path.basename(dataset).removesuffix(".toml")
            first = generate(sawmill, dataset, os.path.join(directory, name), [])
            expected = arrow_rows(first)
            expected.validate(full=True)
            assert expected.num_rows == ROWS
            if dataset == types:
                check_other_types(first)
            expected_duck = duck_rows(first) if duckdb else None
            for number, options in enumerate(ways()):
                files = generate(sawmill, dataset, os.path.join(directory, f"{name}-{number}"), options)
                if files is None:
                    continue
                assert same(expected, arrow_rows(files)), (dataset, options)
                if duckdb:
                    try:
                        assert duck_rows(files) == expected_duck, (dataset, options)
                    except duckdb.Error as error:
                        # DuckDB does not read this encoding of fixed byte arrays; others do.
                        if "BYTE_STREAM_SPLIT encoding is only supported" not in str(error):
                            raise
                for file in files:
                    check_footer(file, options)
                read += len(files)
        if duckdb:
            read += check_blooms(sawmill, flat, os.path.join(directory, "blooms"))
        check_folders(sawmill, directory)
    print(f"{read} files read by pyarrow {pa.__version__}" + (f" and DuckDB {duckdb.__version__}" if duckdb else ""))


main()
