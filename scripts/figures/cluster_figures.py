#!/usr/bin/env python3
"""What the engine of `sawmill-cluster` costs, beside plain `sawmill` with the same cores.

    scripts/figures/cluster_figures.py                       all tables, in Markdown
    scripts/figures/cluster_figures.py --only gen,tasks --runs 5 --rows 40M

Whole processes, from their start to their end, both sides in turns; medians. A scheduler and one executor with as many tasks
as the machine has cores are started before, and are not measured; each has the address of the loopback. PostgreSQL is a private
server without fsync, the same for both sides. SAWMILL names the plain command, SAWMILL_CLUSTER the other one.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAWMILL = os.environ.get("SAWMILL", str(ROOT / "target/dist/sawmill"))
CLUSTER = os.environ.get("SAWMILL_CLUSTER", str(ROOT / "crates/datafusion/target/release/sawmill-cluster"))
CORES = os.cpu_count() or 1


def run(command, **options):
    """Runs a command, and returns the seconds that it took."""
    started = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    took = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return took


def in_turns(runs, sides):
    """The median seconds of each side. A side is a function that runs and returns seconds; the order turns each time."""
    names, seconds = list(sides), {name: [] for name in sides}
    for turn in range(runs):
        for name in names if turn % 2 == 0 else reversed(names):
            seconds[name].append(sides[name]())
    return {name: statistics.median(of) for name, of in seconds.items()}


class Cluster:
    """A scheduler and executors."""

    def __init__(self, folder, executors, tasks):
        self.processes, self.executors = [], []
        scheduler = [CLUSTER, "scheduler", "--port", "0"]
        process = subprocess.Popen(scheduler, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.processes.append(process)
        self.url = process.stdout.readline().split()[1]
        for number in range(executors):
            work = pathlib.Path(folder, f"executor-{time.monotonic_ns()}-{number}")
            work.mkdir()
            executor = [CLUSTER, "executor", "--scheduler", self.url, "--tasks", tasks, "--work-dir", work]
            executor = [str(part) for part in executor]
            self.executors.append(subprocess.Popen(executor, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.processes += self.executors
        run([CLUSTER, "sql", "SELECT 1", "--scheduler", self.url])

    def peaks(self):
        """The most memory that each executor has had, in bytes."""
        return [peak(process.pid) for process in self.executors]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def peak(process):
    """VmHWM of a process."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


@contextlib.contextmanager
def postgres(folder):
    """A private server; its URL."""
    places = [*sorted(map(str, pathlib.Path("/usr/lib/postgresql").glob("*/bin"))), os.environ.get("SAWMILL_PG_BIN")]
    programs = next((pathlib.Path(place) for place in reversed(places) if place), None)
    if programs is None:
        sys.exit("no PostgreSQL: name the folder of its programs in SAWMILL_PG_BIN")
    data = pathlib.Path(folder, "postgres")
    data.mkdir()
    user = {}
    if os.getuid() == 0:
        # PostgreSQL refuses to run as root.
        shutil.chown(data, "postgres", "postgres")
        os.chmod(folder, 0o755)
        user = {"user": "postgres", "group": "postgres"}
    run([programs / "initdb", "-D", data, "-U", "me", "--auth=trust", "--no-sync"], cwd="/", **user)
    port = 20_000 + os.getpid() % 20_000
    settings = ["fsync=off", f"port={port}", f"unix_socket_directories={data}", "max_wal_size=8GB", "shared_buffers=512MB"]
    command = [str(programs / "postgres"), "-D", str(data)] + [part for of in settings for part in ("-c", of)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, cwd="/", **quiet, **user)
    url = f"postgres://me@127.0.0.1:{port}/postgres"
    try:
        for _ in range(100):
            if subprocess.run([programs / "psql", url, "-c", "select 1"], **quiet).returncode == 0:
                break
            time.sleep(0.1)
        yield url, lambda sql: run([programs / "psql", "-q", url, "-c", sql])
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def count(text):
    """A number like 40M."""
    factors = {"k": 10**3, "M": 10**6, "B": 10**9}
    return int(float(text.rstrip("kMB")) * factors.get(text[-1], 1))


def shown(rows):
    """The same number as people write it."""
    return f"{rows / 1e6:g} million"


def table(title, heads, rows):
    """Prints a table."""
    print(f"\n{title}\n")
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def megabytes(sizes):
    return ", ".join(f"{size / 1e6:.0f} MB" for size in sizes)


class Figures:
    """What is measured, each for one table."""

    def __init__(self, args, folder):
        self.args, self.folder, self.number = args, pathlib.Path(folder), 0

    def fresh(self):
        """A folder that does not exist, in place of the last one."""
        shutil.rmtree(self.folder / f"out-{self.number}", ignore_errors=True)
        self.number += 1
        return self.folder / f"out-{self.number}"

    def gen(self):
        """Files: the engine beside `sawmill gen`."""
        rows, memory = [], []
        for dataset, number in [("contacts", count(self.args.rows)), ("events", count(self.args.rows) // 6)]:
            made = [dataset, "--rows", number, "--files", self.args.files]

            def plain():
                return run([SAWMILL, "gen", *made, "--threads", CORES, "--out", self.fresh()])

            def checked():
                out = self.fresh()
                first = run([SAWMILL, "gen", *made, "--threads", CORES, "--out", out])
                return first + run([SAWMILL, "gen", "finish", *made, "--threads", CORES, "--out", out])

            with Cluster(self.folder, 1, CORES) as cluster:

                def engine():
                    return run([CLUSTER, "submit", "gen", *made, "--out", self.fresh(), "--scheduler", cluster.url])

                engine()
                seconds = in_turns(self.args.runs, {"plain": plain, "checked": checked, "engine": engine})
                memory.append((f"gen, {dataset}", megabytes(cluster.peaks())))
            of_plain, of_checked = (seconds["engine"] / seconds[of] for of in ("plain", "checked"))
            what = f"{shown(number)} {dataset}, {self.args.files} files"
            rows.append((of_checked, what, *(f"{seconds[of]:.2f} s" for of in seconds), f"{of_plain:.2f}", f"{of_checked:.2f}"))
        heads = ["", "`gen`", "`gen` and `gen finish`", "`submit gen`", "ratio to `gen`", "ratio to both"]
        table("Files, weak rows first:", heads, [row[1:] for row in sorted(rows, reverse=True)])
        return memory

    def load(self):
        """Rows into PostgreSQL: the engine beside `sawmill load`."""
        rows, memory = [], []
        with postgres(self.folder) as (url, sql), Cluster(self.folder, 1, CORES) as cluster:
            number = count(self.args.rows) // 8
            files = self.fresh()
            run([SAWMILL, "gen", "contacts", "--rows", number, "--files", 16, "--out", files])
            sources = [("generated contacts", f"gen:contacts?rows={number}"), ("contacts of 16 files", str(files))]
            for what, source in sources:

                def load(command):
                    sql("drop table if exists t; drop schema if exists _sawmill cascade")
                    return run([*command, "--to", url, "--table", "t"])

                sides = {
                    "plain": lambda: load([SAWMILL, "load", source, "--connections", CORES]),
                    "engine": lambda: load(
                        [CLUSTER, "submit", "load", source, "--parts", self.args.parts, "--scheduler", cluster.url]
                    ),
                }
                sides["engine"]()
                seconds = in_turns(self.args.runs, sides)
                ratio = seconds["engine"] / seconds["plain"]
                cells = [f"{seconds[of]:.2f} s" for of in seconds]
                rows.append((ratio, f"{shown(number)} {what}, {self.args.parts} parts", *cells, f"{ratio:.2f}"))
            memory.append(("load of contacts", megabytes(cluster.peaks())))
        heads = ["", f"`load --connections {CORES}`", "`submit load`", "ratio"]
        table("Loads into PostgreSQL, weak rows first:", heads, [row[1:] for row in sorted(rows, reverse=True)])
        return memory

    def tasks(self):
        """What a task costs: many files of few rows."""
        rows = []
        with Cluster(self.folder, 1, CORES) as cluster:
            seconds = {}
            for files in (1, 64, 256):
                made = ["orders", "--rows", files * 1000, "--files", files]
                end = ["--scheduler", cluster.url]
                sides = {
                    "plain": lambda: run([SAWMILL, "gen", *made, "--threads", CORES, "--out", self.fresh()]),
                    "engine": lambda: run([CLUSTER, "submit", "gen", *made, "--out", self.fresh(), *end]),
                }
                seconds[files] = in_turns(self.args.runs, sides)
                plain, engine = seconds[files]["plain"], seconds[files]["engine"]
                more = (engine - plain) / files * 1000
                rows.append((files, f"{plain:.3f} s", f"{engine:.3f} s", f"{more:.1f} ms"))
        heads = ["files of 1,000 orders", "`gen`", "`submit gen`", "more for each task"]
        table("What a task costs:", heads, list(reversed(rows)))
        return []

    def rows(self):
        """Generated rows as a table, beside the source of loads."""
        rows = []
        for dataset, number in [("contacts", count(self.args.rows) // 2), ("orders", count(self.args.rows) // 8)]:
            counts = ", ".join(f'count("{name}")' for name in self.columns(dataset))
            query = f"SELECT {counts} FROM gen('{dataset}', rows => {number})"
            sides = {
                "source": lambda: run([SAWMILL, "convert", f"gen:{dataset}?rows={number}", "--parse-only"]),
                "table": lambda: run([CLUSTER, "sql", query]),
            }
            seconds = in_turns(self.args.runs, sides)
            rate = {side: number / seconds[side] / 1e6 for side in seconds}
            ratio = rate["table"] / rate["source"]
            cells = [f"{rate[side]:.1f}" for side in seconds]
            rows.append((ratio, f"{shown(number)} {dataset}", *cells, f"{ratio:.2f}"))
        heads = ["million rows/s", "the source of `load`", "`gen()`, all columns counted", "ratio"]
        table("Generated rows, weak rows first:", heads, [row[1:] for row in sorted(rows)])
        return []

    def columns(self, dataset):
        """The names of its columns."""
        query = f"SELECT * FROM gen('{dataset}', rows => 1)"
        row = subprocess.run([CLUSTER, "sql", query, "--json"], capture_output=True, text=True, check=True).stdout
        return list(json.loads(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="gen,load,tasks,rows", help="tables, by name [default: all]")
    parser.add_argument("--runs", type=int, default=3, help="runs of each side")
    parser.add_argument("--rows", default="160M", help="rows of contacts that are generated")
    parser.add_argument("--files", type=int, default=16, help="files of them")
    parser.add_argument("--parts", type=int, default=8, help="parts of a load")
    parser.add_argument("--folder", help="where files go [default: a temporary folder]")
    args = parser.parse_args()
    memory = []
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        figures = Figures(args, folder)
        for name in args.only.split(","):
            memory += getattr(figures, name)()
    if memory:
        table("The most memory that an executor had (VmHWM):", ["", "peak"], memory)


if __name__ == "__main__":
    main()
