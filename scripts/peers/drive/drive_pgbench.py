#!/usr/bin/env python3
"""Measures the table of docs/drive.md beside pgbench: latency at a set rate and the driver's CPU time, with the same
statements. The figures go to docs/benchmarks/results.json; `scripts/benchmarks --draw` writes the table.

    scripts/peers/drive/drive_pgbench.py --to postgres://me@localhost/db
    scripts/peers/drive/drive_pgbench.py --to 'postgres://me@/db?host=/tmp' --work tpc-b=500,2000 --seconds 20 --rounds 5

Both programs insert rows of history, or carry out the transfer of fixtures/plans/tpc-b.toml, over 8 connections, with
prepared statements, at read committed, on the same tables of 100 branches, so that locks do not decide. Rounds alternate;
the table has medians. pgbench's latencies come from its log and count from the scheduled start, as Sawmill's do. CPU time
is that of the client: for pgbench of the whole process, for Sawmill of the part that counts. A run counts although Sawmill
calls it invalid, because pgbench has no such check; the results say how often. The script refuses to run on a machine
with a load above 1.5. SAWMILL and PGBENCH name the commands.
"""

import argparse
import functools
import glob
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
from figures import results  # noqa: E402

SAWMILL = os.environ.get("SAWMILL", str(ROOT / "target/dist/sawmill"))
PGBENCH = os.environ.get("PGBENCH") or (sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench")) or ["pgbench"])[-1]
PLANS = ROOT / "fixtures/plans"
MAX_LOAD = 1.5
CONNECTIONS = 8
# Numbers of history rows lie beyond those that Sawmill has used.
DRAWS = r"""
\set n :n + 1
\set entry (:client_id + 1) * 1000000000000 + :n
\set account random(0, 99999)
\set teller random(0, 999)
\set branch random(0, 99)
\set delta random(-5000, 5000)
\set balance 0
"""
INSERT = r"""
INSERT INTO history (sawmill_row, teller, branch, account, delta, balance)
VALUES (:entry, :teller, :branch, :account, :delta, :balance);
"""
TRANSFER = rf"""
BEGIN;
UPDATE accounts SET balance = balance + :delta WHERE sawmill_row = :account;
SELECT balance FROM accounts WHERE sawmill_row = :account \gset
UPDATE tellers SET balance = balance + :delta WHERE sawmill_row = :teller;
UPDATE branches SET balance = balance + :delta WHERE sawmill_row = :branch;
{INSERT}
COMMIT;
"""
# What is measured: its name in the table, and what pgbench runs.
WORKS = {"insert": ("INSERT", INSERT), "tpc-b": ("TPC-B", TRANSFER)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", required=True, help="a PostgreSQL; the tables of the plan are made anew in it")
    parser.add_argument(
        "--work",
        action="append",
        metavar="WORK=RATES",
        help="insert or tpc-b, and operations a second; both by default: insert=1000,4000 and tpc-b=500,2000",
    )
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--any-load", action="store_true", help="measure on a busy machine, to try the script")
    return parser.parse_args()


def plan(work, folder):
    """The plan of the repository with more branches, and at read committed; for inserts with that operation alone."""
    text = (PLANS / "tpc-b.toml").read_text()
    for old, new in (
        ('isolation = "serializable"', 'isolation = "read committed"'),
        ('branches"\nrows = 1\n', 'branches"\nrows = 100\n'),
        ('tellers"\nrows = 10\n', 'tellers"\nrows = 1000\n'),
    ):
        assert old in text, f"fixtures/plans/tpc-b.toml has no {old!r}"
        text = text.replace(old, new)
    text = text.replace("tpc-b-tables.toml", str(PLANS / "tpc-b-tables.toml"))
    if work == "insert":
        text = text[: text.index("[[operations]]")] + '[[operations]]\nname = "insert"\ninsert = "history"\n'
    path = folder / f"{work}.toml"
    path.write_text(text)
    return path


def sawmill(args, work, rate, folder):
    result = folder / "result.json"
    command = [SAWMILL, "drive", str(plan(work, folder)), "--to", args.to, "--rate", str(rate)]
    command += ["--for", f"{args.seconds}s", "--overwrite", "--no-proof", "--quiet", "--json-file", str(result)]
    result.unlink(missing_ok=True)
    # A result that a busy machine has spoilt is an error of the command, and is written.
    spoilt = subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0
    if spoilt and not result.exists():
        sys.exit(f"{SAWMILL} drive failed without a result")
    sawmill.spoilt = getattr(sawmill, "spoilt", 0) + spoilt
    found = json.loads(result.read_text())
    latency = found["total"]["latency"]
    return found["driver"]["cpu_us_per_operation"], latency["p50_us"], latency["p99_us"]


def pgbench(args, work, rate, threads, folder):
    script = folder / f"{work}.sql"
    script.write_text(DRAWS + WORKS[work][1])
    # The numbers of a round's history rows follow those of the round before.
    pgbench.first = getattr(pgbench, "first", 0) + 1_000_000_000
    command = [PGBENCH, "-n", "-M", "prepared", "-c", str(CONNECTIONS), "-j", str(threads), "-R", str(rate)]
    command += ["-T", str(args.seconds), "-D", f"n={pgbench.first}", "-f", str(script), "-l"]
    command += ["--log-prefix", str(folder / "log"), args.to]
    for old in folder.glob("log*"):
        old.unlink()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = (line.split() for log in folder.glob("log*") for line in log.read_text().splitlines())
    times = sorted(int(line[2]) for line in lines if line[2].isdigit())
    return cpu * 1e6 / len(times), times[len(times) // 2], times[len(times) * 99 // 100]


def main():
    args = arguments()
    if os.getloadavg()[0] > MAX_LOAD and not args.any_load:
        sys.exit(f"the load is {os.getloadavg()[0]:.1f}: measure on a machine that does nothing else")
    sides = {"sawmill drive": sawmill}
    for threads in (CONNECTIONS, 1):
        sides[f"pgbench -j {threads}"] = functools.partial(pgbench, threads=threads)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for work, rates in (given.split("=") for given in args.work or ["insert=1000,4000", "tpc-b=500,2000"]):
            for rate in map(int, rates.split(",")):
                rounds = [
                    {name: side(args, work, rate, folder=pathlib.Path(folder)) for name, side in sides.items()}
                    for _ in range(args.rounds)
                ]
                medians = {name: [statistics.median(one) for one in zip(*(each[name] for each in rounds))] for name in sides}
                rows.append({"work": WORKS[work][0], "rate": rate, "sides": medians})
                print(rows[-1], flush=True)
    if args.any_load:
        return
    kept = ROOT / "docs/benchmarks/results.json"
    versions = subprocess.run([PGBENCH, "--version"], capture_output=True, text=True).stdout.strip()
    found = {"kind": "recorded", "rows": rows, "versions": versions, "seconds": args.seconds, "rounds": args.rounds}
    found["invalid_runs"] = sawmill.spoilt
    results.save(kept, {**results.load(kept), "drive-pgbench": {**found, **results.here(ROOT)}})


if __name__ == "__main__":
    main()
