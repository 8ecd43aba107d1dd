#!/usr/bin/env python3
"""Measures loads, footers and generation against a store of a chosen latency and throughput.

    scripts/figures/store_figures.py              all figures, in some ten minutes
    scripts/figures/store_figures.py --only load  or footers, gen, late, tables

Data and results lie in target/store-figures. The store is scripts/figures/slow_store.py on the same machine, so its
processor time counts against Sawmill. SAWMILL names another binary, SAWMILL_PYTHON one that has pyarrow, boto3, and
polars with adbc-driver-postgresql.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "store-figures"
SAWMILL = os.environ.get("SAWMILL", str(ROOT / "target" / "dist" / "sawmill"))
PYTHON = os.environ.get("SAWMILL_PYTHON", sys.executable)
PORT = 9137
ENDPOINT = f"http://127.0.0.1:{PORT}"
ENVIRONMENT = dict(os.environ, AWS_ENDPOINT_URL=ENDPOINT, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b",
                   AWS_REGION="us-east-1", AWS_ALLOW_HTTP="true")
ROUNDS = 3
OBJECTS = 10_000

PYARROW_FOOTERS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import pyarrow.parquet, pyarrow.fs
pyarrow.set_io_thread_count(int(sys.argv[2]))
store = pyarrow.fs.S3FileSystem(endpoint_override=sys.argv[1], scheme="http", access_key="a", secret_key="b",
                                region="us-east-1")
names = [found.path for found in store.get_file_info(pyarrow.fs.FileSelector("data/many"))
         if found.path.endswith(".parquet")]
def rows(name):
    with store.open_input_file(name) as file:
        return pyarrow.parquet.read_metadata(file).num_rows
with ThreadPoolExecutor(int(sys.argv[2])) as threads:
    print(sum(threads.map(rows, names)))
"""

BOTO_UPLOAD = """
import sys, pathlib, boto3
from boto3.s3.transfer import TransferConfig
store = boto3.client("s3", endpoint_url=sys.argv[1])
how = TransferConfig(multipart_threshold=8 << 20, multipart_chunksize=8 << 20, max_concurrency=8)
for file in sorted(pathlib.Path(sys.argv[2]).glob("*.parquet")):
    store.upload_file(str(file), "out", "boto/" + file.name, Config=how)
"""

POLARS_LOAD = """
import os, sys, polars
options = {"aws_endpoint_url": sys.argv[2], "aws_access_key_id": "a", "aws_secret_access_key": "b",
           "aws_region": "us-east-1", "aws_allow_http": "true"}
source = sys.argv[1]
frame = polars.scan_parquet(source + "/*.parquet", storage_options=options if "://" in source else None).collect()
frame.write_database(os.environ["SAWMILL_BENCH_TABLE"], connection=os.environ["SAWMILL_BENCH_URL"], engine="adbc",
                     if_table_exists="append")
"""


@contextmanager
def store(*options):
    command = [PYTHON, str(ROOT / "scripts" / "figures" / "slow_store.py"), str(WORK), "--port", str(PORT), *options]
    serving = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert serving.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        print("   ", serving.communicate()[0].strip())


def run(*command):
    """The seconds of a whole process, and what it printed."""
    started = time.monotonic()
    done = subprocess.run([str(part) for part in command], env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return time.monotonic() - started, done.stdout


def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def data():
    folder = WORK / "data"
    if not (folder / "trips").exists():
        spec = ROOT / "scripts" / "peers" / "specs" / "trips.toml"
        run(SAWMILL, "gen", spec, "--rows", "2M", "--files", "4", "--out", folder / "trips", "--quiet")
    if not (folder / "many").exists():
        run(SAWMILL, "gen", "contacts", "--rows", OBJECTS * 10, "--files", OBJECTS, "--out", folder / "many", "--quiet")
    return folder


def load(source, *options):
    """The median seconds of loads into a private server, from start of the process to its end."""
    result = WORK / "load.json"
    run(SAWMILL, "bench", "load", source, "--connections", "2", "--runs", "3", "--warmup", "1", "--json-file", result,
        *options)
    found = json.loads(result.read_text())
    return found["cases"][0]["sides"][0]["wall"]["median"]


def loads(folder):
    bytes_ = size(folder / "trips")
    print(f"load: 2 M trips, {bytes_ / 1e6:.0f} MB, degree 2; medians of {ROUNDS} rounds of 3")
    for options, needed in ((("--latency", "30"), 0), (("--latency", "30", "--rate", "100"), bytes_ / 100e6),
                            (("--latency", "30", "--rate", "25"), bytes_ / 25e6)):
        local, remote = [], []
        with store(*options):
            for _ in range(ROUNDS):
                local.append(load(folder / "trips"))
                remote.append(load("s3://data/trips"))
        here, there = statistics.median(local), statistics.median(remote)
        print(f"  {' '.join(options)}: {there:.3f} s; local {here:.3f} s ({there / here:.2f} x); the bytes need "
              f"{needed:.3f} s ({there / max(here, needed):.2f} x of the larger)")


def footers(folder):
    print(f"footers: {OBJECTS} objects")
    for latency in (0, 20):
        for requests in (32, 64):
            with store("--latency", str(latency)):
                own = statistics.median(run(SAWMILL, "footer", "s3://data/many", "--requests", requests,
                                            "--json")[0] for _ in range(ROUNDS))
                other = run(PYTHON, "-c", PYARROW_FOOTERS, ENDPOINT, requests)[0]
            bound = OBJECTS * latency / 1000 / requests
            print(f"  {latency} ms, {requests} at once: {own:.3f} s ({OBJECTS / own:.0f}/s), the latency alone "
                  f"{bound:.3f} s ({bound / own:.2f} of that rate); pyarrow {other:.3f} s ({other / own:.1f} x)")
    own = statistics.median(run(SAWMILL, "footer", folder / "many", "--json")[0] for _ in range(ROUNDS))
    print(f"  local files: {own:.3f} s")


def late(_):
    print(f"late: {OBJECTS} footers at 20 ms, some of which take a second more")
    for percent in ("0", "0.2", "0.5", "1", "2"):
        with store("--latency", "20", "--late", percent):
            seconds = [run(SAWMILL, "footer", "s3://data/many", "--json")[0] for _ in range(ROUNDS)]
        print(f"  {percent} % late: {statistics.median(seconds):.3f} s")


def generation(_):
    rows = ("contacts", "--rows", "50M", "--files", "4", "--threads", "2", "--quiet")
    local = statistics.median(run(SAWMILL, "gen", *rows, "--overwrite", "--out", "/dev/shm/store-figures")[0]
                              for _ in range(ROUNDS))
    here = pathlib.Path("/dev/shm/store-figures")
    bytes_ = size(here)
    print(f"gen: 50 M contacts, {bytes_ / 1e6:.0f} MB; local {local:.2f} s")
    for rate in (100, 200, 400):
        own, plain = [], []
        with store("--latency", "30", "--rate", str(rate), "--keep"):
            for n in range(ROUNDS):
                own.append(run(SAWMILL, "gen", *rows, "--out", f"s3://out/{rate}-{n}")[0])
                plain.append(run(PYTHON, "-c", BOTO_UPLOAD, ENDPOINT, here)[0])
                run("rm", "-r", WORK / "out")
        own, plain = statistics.median(own), statistics.median(plain)
        bound = max(local, bytes_ / rate / 1e6)
        print(f"  30 ms, {rate} MB/s: {own:.2f} s, {bound / own:.2f} of the smaller rate; boto3 uploads the finished "
              f"files in {plain:.2f} s ({plain / own:.2f} x)")
    run("rm", "-r", here)


def tables(_):
    print("tables: 2 M trips at 30 ms; seconds by table and degree")
    with store("--latency", "30"):
        print(run(SAWMILL, "bench", "load", "s3://data/trips", "--table-kind", "logged,unlogged", "--keyed",
                  "yes,no", "--primary-key", "trip_id", "--connections", "1,2,4,8", "--runs", "3", "--warmup", "0")[1])
        peer = f"polars and ADBC={PYTHON} {WORK / 'polars_load.py'} s3://data/trips {ENDPOINT}"
        (WORK / "polars_load.py").write_text(POLARS_LOAD)
        print(run(SAWMILL, "bench", "load", "s3://data/trips", "--connections", "2", "--runs", "3", "--against", peer)[1])


FIGURES = {"load": loads, "footers": footers, "gen": generation, "late": late, "tables": tables}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=FIGURES, action="append")
    chosen = options.parse_args().only or list(FIGURES)
    WORK.mkdir(parents=True, exist_ok=True)
    folder = data()
    for name in chosen:
        FIGURES[name](folder)


main()
