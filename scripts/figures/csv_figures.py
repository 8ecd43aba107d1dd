#!/usr/bin/env python3
"""Measures CSV beside DuckDB, polars and psql: parsing, shuffled rows to sorted Parquet by day, and loads.

    scripts/figures/csv_figures.py               all figures, in some ten minutes
    scripts/figures/csv_figures.py --only parse  or parquet, load

Each figure is the median of three turns of whole processes. Data lies in target/csv-figures: 5 million taxi trips
of 19 columns in the order of time, with 5 % late, and shuffled (875 MB each), 3 million rows of text with
quotes (550 MB), and a million rows of 105 columns, as ClickBench has them (649 MB).

SAWMILL names another binary, SAWMILL_PYTHON one that has duckdb and polars. Peers of the load that are optional:
SAWMILL_DUCKDB_PYTHON, one whose duckdb has the postgres extension (scripts/peers/load/load_duckdb installs it), and
timescaledb-parallel-copy on the PATH. All have two threads.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "csv-figures"
SAWMILL = os.environ.get("SAWMILL", str(ROOT / "target" / "dist" / "sawmill"))
PYTHON = os.environ.get("SAWMILL_PYTHON", sys.executable)
TURNS = 3
TIME = "tpep_pickup_datetime"
BY_DAY = ("--sort-by", TIME, "--partition-by", f"day({TIME})")
PICKED_UP = {
    "ordered": '{ walk = { start = 2024-01-01T00:00:00, step = "260ms", jitter = 1.0 } }',
    "late": '{ walk = { start = 2024-01-01T00:00:00, step = "260ms", jitter = 1.0, late = { share = 0.05, by = "2d" } } }',
    "shuffled": "{ uniform = { min = 2024-01-01T00:00:00, max = 2024-01-16T00:00:00 } }",
}
TEXT = """name = "text"
fields = [
  { name = "id", type = "int64", values = { sequence = { start = 1 } } },
  { name = "at", type = "timestamp", values = { uniform = { min = 2024-01-01T00:00:00, max = 2024-01-31T00:00:00 } } },
  { name = "words", type = "string", values = { words = { min = 1, max = 4 } } },
  { name = "note", type = "string", values = { text = { length = { constant = 80 }, letters = "a-z\\", " } } },
  { name = "more", type = "string", values = { words = { min = 8, max = 16 } } },
  { name = "score", type = "int32", values = { uniform = { min = 1, max = 100 } } },
]
"""

PARSE = {
    "DuckDB": """
import duckdb, sys
duckdb.execute("set threads = 2")
print(duckdb.execute(f"select count(*), sum({sys.argv[2]}) from read_csv('{sys.argv[1]}')").fetchall())
""",
    "polars": """
import polars, sys
rows = polars.scan_csv(sys.argv[1], try_parse_dates=True)
print(rows.select(polars.len(), polars.col(sys.argv[2]).sum()).collect(engine="streaming").row(0))
""",
}
PARQUET = {
    "DuckDB": """
import duckdb, sys
path, time, out, *limit = sys.argv[1:]
duckdb.execute("set threads = 2")
duckdb.execute(f"set temp_directory = '{out}.spilled'")
if limit:
    duckdb.execute(f"set memory_limit = '{limit[0]}'")
duckdb.execute(f"copy (select *, {time}::date as day from read_csv('{path}') order by {time}) to '{out}' "
               "(format parquet, compression uncompressed, partition_by (day))")
""",
    "polars": """
import polars, sys
path, time, out = sys.argv[1:]
rows = polars.scan_csv(path, try_parse_dates=True).with_columns(polars.col(time).dt.date().alias("day")).sort(time)
rows.sink_parquet(polars.PartitionBy(out, key="day"), compression="uncompressed", mkdir=True, engine="streaming")
""",
}


def data():
    WORK.mkdir(parents=True, exist_ok=True)
    taxi = (ROOT / "fixtures" / "taxi.toml").read_text()
    before = next(line for line in taxi.splitlines() if line.startswith("values = { walk = { start = 2024-01-01"))
    specs = {name: (taxi.replace(before, f"values = {values}"), "5M") for name, values in PICKED_UP.items()}
    hits = (ROOT / "fixtures" / "hits.toml").read_text()
    for name, (spec, rows) in {**specs, "text": (TEXT, "3M"), "hits": (hits, "1M")}.items():
        if not (WORK / f"{name}.csv").exists():
            (WORK / f"{name}.toml").write_text(spec)
            run(SAWMILL, "gen", WORK / f"{name}.toml", "--rows", rows, "--as", "csv", "--out", WORK / f"{name}.csv", "--quiet")
    if not (WORK / "ordered.parquet").exists():
        run(SAWMILL, "convert", WORK / "ordered.csv", "--out", WORK / "ordered.parquet", "--quiet")


def run(*command):
    """The seconds, CPU seconds and most memory in MiB of a whole process."""
    words = [str(word) for word in command]
    environment = dict(os.environ, POLARS_MAX_THREADS="2")
    started = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment) as process:
        message = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"error: {' '.join(words)[:300]}: {message[-1500:]}")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def turns(title, ways):
    """Runs all ways in turn; prints their medians."""
    found = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, command in ways.items():
            subprocess.run(["rm", "-rf", str(WORK / "out")], check=True)
            found[name].append(run(*command))
    own = statistics.median(seconds for seconds, _, _ in next(iter(found.values())))
    for name, runs in found.items():
        seconds = statistics.median(run[0] for run in runs)
        cpu = statistics.median(run[1] for run in runs)
        print(f"{title:24} {name:20} {seconds:6.2f} s ({seconds / own:.2f} x), CPU {cpu:6.2f} s, "
              f"{max(run[2] for run in runs):5.0f} MiB", flush=True)


def parse():
    columns = {"ordered": "fare_amount", "shuffled": "fare_amount", "text": "score", "hits": "ResolutionWidth"}
    for name, column in columns.items():
        path = WORK / f"{name}.csv"
        peers = {peer: (PYTHON, "-c", program, path, column) for peer, program in PARSE.items()}
        turns(f"parse {name}", {"sawmill": (SAWMILL, "convert", path, "--parse-only", "--columns", column), **peers})


def parquet():
    path, out = WORK / "shuffled.csv", WORK / "out"
    own = (SAWMILL, "convert", path, *BY_DAY, "--out", out)
    turns("shuffled to Parquet", {
        "sawmill": own,
        "DuckDB": (PYTHON, "-c", PARQUET["DuckDB"], path, TIME, out),
        "DuckDB, 256 MiB": (PYTHON, "-c", PARQUET["DuckDB"], path, TIME, out, "256MiB"),
        "polars": (PYTHON, "-c", PARQUET["polars"], path, TIME, out),
    })


def loading_peers():
    """The commands of other programs that load the same file into the table that exists."""
    path = WORK / "ordered.csv"
    copy = WORK / "copy.sh"
    copy.write_text('exec psql "$SAWMILL_BENCH_URL" -qXc "\\\\copy $SAWMILL_BENCH_TABLE from '
                    f"'{path}' with (format csv, header)\"\n")
    yield f"psql=bash {copy}"
    if shutil.which("timescaledb-parallel-copy"):
        parallel = WORK / "parallel_copy.sh"
        parallel.write_text('exec timescaledb-parallel-copy --connection "$SAWMILL_BENCH_URL" --table "$SAWMILL_BENCH_TABLE" '
                            f"--file {path} --skip-header --workers 2\n")
        yield f"timescaledb-parallel-copy=bash {parallel}"
    if python := os.environ.get("SAWMILL_DUCKDB_PYTHON"):
        yield f"DuckDB={python} {ROOT / 'scripts/peers/load/python/load_duckdb.py'} {path}"


def load():
    """Loads into private servers that Sawmill starts, over two connections."""
    against = [word for peer in loading_peers() for word in ("--against", peer)]
    cases = {
        "CSV": ("ordered.csv", *against),
        "Parquet": ("ordered.parquet",),
        "CSV by day, in order": ("ordered.csv", *BY_DAY),
        "CSV by day, 5 % late": ("late.csv", *BY_DAY),
        "CSV by day, shuffled": ("shuffled.csv", *BY_DAY),
    }
    for name, (file, *options) in cases.items():
        result = WORK / "load.json"
        run(SAWMILL, "bench", "load", WORK / file, "--connections", "2", "--runs", TURNS, "--warmup", "0", *options,
            "--json-file", result)
        for side in json.loads(result.read_text())["cases"][0]["sides"]:
            print(f"load {name:24} {side['name']:10} {side['wall']['median']:6.2f} s", flush=True)


FIGURES = {"parse": parse, "parquet": parquet, "load": load}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=FIGURES, action="append")
    chosen = options.parse_args().only or list(FIGURES)
    data()
    for name in chosen:
        FIGURES[name]()


main()
