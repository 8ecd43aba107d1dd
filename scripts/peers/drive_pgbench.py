#!/usr/bin/env python3
"""The table of docs/drive.md beside pgbench: latency at a set rate and the driver's CPU time, with the same statements.

    scripts/peers/drive_pgbench.py --to postgres://me@localhost/db
    scripts/peers/drive_pgbench.py --to 'postgres://me@/db?host=/tmp' --rates 500,2000 --seconds 20 --rounds 5

Both programs carry out the transfer of fixtures/plans/tpc-b.toml over 8 connections, with prepared statements, at read
committed, on the same tables of 100 branches, so that locks do not decide. Rounds alternate; the table has medians.
pgbench's latencies come from its log and count from the scheduled start, as Sawmill's do. CPU time is that of the client:
for pgbench of the whole process, for Sawmill of the part that counts. It refuses to run on a machine with a load above
1.5. SAWMILL and PGBENCH name the commands.
"""

import argparse
import glob
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAWMILL = os.environ.get("SAWMILL", str(ROOT / "target/release/sawmill"))
PGBENCH = os.environ.get("PGBENCH") or (sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench")) or ["pgbench"])[-1]
PLANS = ROOT / "fixtures/plans"
MAX_LOAD = 1.5
CONNECTIONS = 8
# Numbers of history rows lie beyond those that Sawmill has used.
SCRIPT = r"""
\set n :n + 1
\set entry (:client_id + 1) * 1000000000000 + :n
\set account random(0, 99999)
\set teller random(0, 999)
\set branch random(0, 99)
\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET balance = balance + :delta WHERE sawmill_row = :account;
SELECT balance FROM accounts WHERE sawmill_row = :account \gset
UPDATE tellers SET balance = balance + :delta WHERE sawmill_row = :teller;
UPDATE branches SET balance = balance + :delta WHERE sawmill_row = :branch;
INSERT INTO history (sawmill_row, teller, branch, account, delta, balance)
VALUES (:entry, :teller, :branch, :account, :delta, :balance);
COMMIT;
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", required=True, help="a PostgreSQL; the tables of the plan are made anew in it")
    parser.add_argument("--rates", default="500,2000", help="operations a second")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--any-load", action="store_true", help="measure on a busy machine, to try the script")
    return parser.parse_args()


def plan(folder):
    """The plan of the repository with more branches, and at read committed."""
    text = (PLANS / "tpc-b.toml").read_text()
    for old, new in (
        ('isolation = "serializable"', 'isolation = "read committed"'),
        ('branches"\nrows = 1\n', 'branches"\nrows = 100\n'),
        ('tellers"\nrows = 10\n', 'tellers"\nrows = 1000\n'),
    ):
        assert old in text, f"fixtures/plans/tpc-b.toml has no {old!r}"
        text = text.replace(old, new)
    text = text.replace("tpc-b-tables.toml", str(PLANS / "tpc-b-tables.toml"))
    path = folder / "tpc-b.toml"
    path.write_text(text)
    return path


def sawmill(args, rate, folder):
    result = folder / "result.json"
    command = [SAWMILL, "drive", str(folder / "tpc-b.toml"), "--to", args.to, "--rate", str(rate)]
    command += ["--for", f"{args.seconds}s", "--overwrite", "--no-proof", "--quiet", "--results", str(result)]
    # A result that a busy machine has spoilt is an error of the command.
    subprocess.run(command, check=not args.any_load, stdout=subprocess.DEVNULL)
    found = json.loads(result.read_text())
    latency = found["total"]["latency"]
    return found["driver"]["cpu_us_per_operation"], latency["p50_us"], latency["p99_us"]


def pgbench(args, rate, threads, folder):
    script = folder / "tpc-b.sql"
    script.write_text(SCRIPT)
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
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plan(folder)
        programs = [("sawmill drive --rate {rate}", sawmill)]
        for threads in (CONNECTIONS, 1):
            run = lambda args, rate, folder, threads=threads: pgbench(args, rate, threads, folder)  # noqa: E731
            programs.append((f"pgbench -M prepared -c 8 -j {threads} -R {{rate}}", run))
        print("| load | program | CPU µs an operation | p50 µs | p99 µs |\n|---|---|---|---|---|")
        for rate in map(int, args.rates.split(",")):
            rounds = [[run(args, rate, folder) for _, run in programs] for _ in range(args.rounds)]
            for place, (title, _) in enumerate(programs):
                medians = (statistics.median(figures) for figures in zip(*(one[place] for one in rounds)))
                cells = " | ".join(f"{figure:.0f}" for figure in medians)
                print(f"| {rate:,} a second | `{title.format(rate=rate)}` | {cells} |")


if __name__ == "__main__":
    main()
