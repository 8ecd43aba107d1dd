"""The benchmarks and what each of them runs, one after the other."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from . import results

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The script of each peer, and the result it writes.
PEERS = [
    ("arrow-writer", "gen-arrow-writer"),
    ("tpchgen-cli", "gen-tpchgen-cli"),
    ("tpch_lineitem", "gen-tpch-lineitem"),
    ("tpch_orders", "gen-tpch-orders"),
    ("tpch_partsupp", "gen-tpch-partsupp"),
    ("tpch_customer", "gen-tpch-customer"),
    ("datablok", "gen-datablok"),
    ("gen_duckdb", "gen-duckdb"),
    ("gen_polars", "gen-polars"),
    ("gen_pyarrow", "gen-pyarrow"),
    ("footer_pyarrow", "footer-footer_pyarrow"),
    ("footer_polars", "footer-footer_polars"),
    ("footer_duckdb", "footer-footer_duckdb"),
    ("load_floor", "load-load_floor"),
    ("load_psql", "load-load_psql"),
    ("load_adbc", "load-load_adbc"),
    ("load_duckdb", "load-load_duckdb"),
    ("load_pgpq", "load-load_pgpq"),
    ("load_ingestr", "load-load_ingestr"),
    ("load_polars", "load-load_polars"),
    ("load_pandas", "load-load_pandas"),
]
# Runs without a peer: arguments of `sawmill bench`; OUT is a folder in memory if available.
MILLIONS = "gen contacts --rows 10M --files 4"
OWN = {
    "own-threads": f"{MILLIONS} --threads 1,2 --runs 9 --out OUT",
    "own-writers": "gen contacts --rows 10M --files 1,4,16 --writers 1,2 --threads 2 --runs 7 --out OUT",
    "own-codecs": f"{MILLIONS} --compression none,snappy,zstd --threads 2 --runs 5 --out OUT",
    "own-memory-10M": "gen contacts --rows 10M --threads 2 --runs 3 --out /dev/null",
    "own-memory-1B": "gen contacts --rows 1B --threads 2 --runs 1 --warmup 0 --out /dev/null",
    "own-wide": "gen wide:10000 --rows 20000 --row-group-rows 1000 --threads 2 --runs 3 --out OUT",
    "own-samples": "gen contacts --rows 100M --files 4 --threads 1 --runs 3 --out OUT "
    "--flamegraph docs/generator-contacts.svg",
}
# Every built-in dataset, the specs of two public tables, rows of other tables, and the same values flat and nested.
DATASETS = {
    "contacts": ("contacts", "20M"),
    "orders": ("orders", "3M"),
    "events": ("events", "3M"),
    "devices": ("devices", "5M"),
    "deep": ("deep", "500k"),
    "taxi": ("fixtures/taxi.toml", "3M"),
    "lineitem": ("fixtures/lineitem.toml", "3M"),
    "changes of a table": ("scripts/peers/specs/crm.toml/changes", "1M"),
    "columns of a parent": ("scripts/peers/specs/crm.toml/orders", "2M"),
    "look-ups": ("scripts/peers/specs/crm.toml/visits", "2M"),
    "follows": ("scripts/peers/specs/follows.toml", "2M"),
    "flat": ("scripts/peers/specs/flat.toml", "4M"),
    "nested": ("scripts/peers/specs/nested.toml", "4M"),
}
for dataset, (spec, rows) in DATASETS.items():
    OWN[f"own-dataset-{dataset.replace(' ', '-')}"] = (
        f"gen {spec} --rows {rows} --compression none --threads 1,2 --runs 7 --out /dev/null"
    )
MICRO = ["copy", "contacts", "generator", "span", "crate_rows"]
TURNS = ["footer_foreign", "footer_files", "crate_load"]
OTHERS = ["tables", "table_peers", "postgres_floor", "micro", "turns", "like"]
# Peers that load into each of the four kinds of tables, and the rows that they load: spec and key.
TABLE_PEERS = {
    "DuckDB postgres": "load_duckdb",
    "pgpq and psycopg": "load_pgpq",
    "adbc_driver_postgresql": "load_adbc",
    "ingestr": "load_ingestr",
}
TABLE_ROWS = {"taxi": "trip_id", "orders": "o_orderkey", "lineitem": "l_orderkey"}
QUICK = {
    "SAWMILL_RUNS": "2",
    "SAWMILL_GEN_ROWS": "200000",
    "SAWMILL_TPCH_SCALE": "0.01",
    "SAWMILL_FOOTER_FILES": "2",
    "SAWMILL_LOAD_ROWS": "5000",
}
# Peers that insert row by row are slow: they load as many rows as they can in a minute, so that the start of Python
# hardly counts, in fewer runs.
SLOW = {
    "load_pandas": {"SAWMILL_RUNS": "3", "SAWMILL_WARMUP": "0", "SAWMILL_LOAD_ROWS": "200000"},
    "load_ingestr": {"SAWMILL_RUNS": "3", "SAWMILL_WARMUP": "0", "SAWMILL_LOAD_ROWS": "1000000"},
}


class Benchmarks:
    """All benchmarks of this machine; passes each result or failure to `keep` immediately."""

    def __init__(self, given, keep):
        self.given, self.quick, self.keep = given, given.quick, keep
        self.environment = dict(os.environ, **(QUICK if self.quick else {}))
        self.peers = pathlib.Path(self.environment.get("SAWMILL_PEERS", ROOT / "target" / "peers"))
        self.written = self.peers / "results"
        self.written.mkdir(parents=True, exist_ok=True)
        if "SAWMILL" not in self.environment:
            subprocess.run(["cargo", "build", "--profile", "dist", "--package", "sawmill", "--features", "full"], cwd=ROOT, check=True)
        self.binary = self.environment.get("SAWMILL", str(ROOT / "target" / "dist" / "sawmill"))

    def all(self):
        """Each benchmark: its name, the kind and the name of its result, and the function that measures it."""
        for name, result in PEERS:
            yield name, "sawmill bench", result, lambda name=name, result=result: self.peer(name, result)
        for peer, script in TABLE_PEERS.items():
            for rows_of, key in TABLE_ROWS.items():
                kinds = lambda peer=peer, script=script, rows_of=rows_of, key=key: self.kinds(peer, script, rows_of, key)
                yield "table_peers", "sawmill bench", f"kinds-{script}-{rows_of}", kinds
        for name in OWN:
            yield name, "sawmill bench", name, lambda name=name: self.own(name)
        yield "tables", "sawmill bench", "load-tables", self.tables
        yield "postgres_floor", "turns", "postgres-floor", self.postgres_floor
        yield "micro", "criterion", "micro", self.micro
        yield "turns", "turns", "turns", self.turns
        yield "like", "like", "like", self.like

    def measure(self):
        """Runs the selected benchmarks. A failure is recorded with its reason, and the next benchmark follows."""
        for name, kind, result, benchmark in self.all():
            if self.given.only and name not in self.given.only:
                continue
            print(f"== {name}, {result}", flush=True)
            started = time.monotonic()
            try:
                found = benchmark()
            except Exception as error:  # noqa: BLE001 - no failure may stop the other benchmarks.
                found = results.failed(kind, str(error).replace(str(ROOT), "."))
            seconds = time.monotonic() - started
            print(f"   {seconds:.0f} s" + (f", no figures: {found['failed']}" if "failed" in found else ""), flush=True)
            self.keep(result, found)

    def bench(self, file, command, environment=None, timeout=240):
        """Runs `sawmill bench` once and reads the result from the file it writes."""
        path = self.written / f"{file}.json"
        path.unlink(missing_ok=True)
        run(command, environment or self.environment, timeout)
        if not path.exists():
            raise RuntimeError("the command wrote no result")
        return results.of_sawmill_bench(json.loads(path.read_text()), ROOT)

    def peer(self, name, file):
        # The result of a peer begins with the folder of its script.
        program = script_of(file.split("-")[0], name)
        # Building or downloading a peer can take longer than measuring it.
        run([program, "install"], self.environment, 1800)
        changed = {} if self.quick else SLOW.get(name, {})
        return self.bench(file, [program], {**self.environment, **changed})

    def own(self, name):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        arguments = OWN[name]
        if self.quick:
            arguments = arguments.replace("100M", "300k").replace("10M", "200k").replace("1B", "300k")
            arguments = arguments.replace("docs/generator-contacts.svg", str(self.written / "contacts.svg"))
        with tempfile.TemporaryDirectory(dir=memory) as out:
            words = [word.replace("OUT", out) for word in arguments.split()]
            found = self.bench(name, [self.binary, "bench", *words, "--json-file", str(self.written / f"{name}.json")])
        # The folder's name differs each time.
        found["command"] = found["command"].replace(out, memory or tempfile.gettempdir())
        return found

    def kinds(self, peer, script, rows_of, key):
        """Loads of rows like those of `fixtures/ROWS_OF.toml` into four kinds of tables, compared with a peer."""
        program = script_of("load", script)
        # Enough rows for the start of a peer's process to hardly count.
        rows = self.environment.get("SAWMILL_LOAD_ROWS", "1000000")
        spec = str(ROOT / "fixtures" / f"{rows_of}.toml")
        changed = {**self.environment, "SAWMILL_LOAD_ROWS": rows, "SAWMILL_LOAD_SPEC": spec}
        run([program, "data"], changed, 1800)
        name = f"kinds-{script}-{rows_of}"
        command = [self.binary, "bench", "load", str(self.peers / "data" / f"{rows_of}-{rows}"), "--connections", "2"]
        command += ["--table-kind", "logged,unlogged", "--keyed", "no,yes", "--primary-key", key]
        command += ["--runs", changed.get("SAWMILL_RUNS", "3"), "--warmup", "0", "--against", f"{peer}={program} run"]
        return self.bench(name, command + ["--json-file", str(self.written / f"{name}.json")], changed, 600)

    def trips(self, rows):
        files = str(self.peers / "data" / f"trips-{rows}")
        if not pathlib.Path(files).exists():
            spec = str(ROOT / "scripts" / "peers" / "specs" / "trips.toml")
            run([self.binary, "gen", spec, "--rows", rows, "--files", "4", "--out", files], self.environment)
        return files

    def tables(self):
        files = self.trips(self.environment.get("SAWMILL_LOAD_ROWS", "1000000"))
        command = [self.binary, "bench", "load", files, "--table-kind", "logged,unlogged"]
        command += ["--keyed", "yes,no", "--primary-key", "trip_id"]
        command += ["--connections", "1,2" if self.quick else "1,2,4,8", "--runs", "2" if self.quick else "3"]
        return self.bench("load-tables", command + ["--json-file", str(self.written / "load-tables.json")])

    def cargo(self, names, arguments, environment=None, timeout=1800):
        # One set of features for all benchmarks, so that nothing is built twice.
        command = ["cargo", "bench", "--package", "sawmill-benches", "--features", "newest"]
        command += [word for name in names for word in ("--bench", name)]
        run(command + ["--no-run"], self.environment, 3600)
        run(command + ["--", *(["--test"] if self.quick else arguments)], environment or self.environment, timeout)

    def interleaved(self, file, names, arguments=()):
        tables = self.written / file
        tables.unlink(missing_ok=True)
        self.cargo(names, list(arguments), {**self.environment, "SAWMILL_TURNS_JSON": str(tables)})
        if not tables.exists():
            raise RuntimeError("nothing was measured")
        return results.of_turns(tables, ROOT)

    def postgres_floor(self):
        # Rows and rounds.
        return self.interleaved("postgres-floor.ndjson", ["load_floor"], ["1000000", "3"])

    def micro(self):
        started = time.time()
        self.cargo(MICRO, [])
        return results.of_criterion(ROOT / "target" / "criterion", started, ROOT)

    def turns(self):
        foreign = self.peers / "data" / "foreign"
        if not foreign.exists():
            run([sys.executable, str(ROOT / "scripts" / "peers" / "files" / "foreign_footers.py"), str(foreign)], self.environment)
        self.environment["SAWMILL_FOREIGN_FOOTERS"] = str(foreign)
        return self.interleaved("turns.ndjson", TURNS)

    def like(self):
        """Twins of public data sets beside SDV's; the slowest of these takes SDV a minute."""
        program = script_of("like", "like")
        run([program, "install"], self.environment, 1800)
        run([program, *(["iris"] if self.quick else [])], {**self.environment, "SAWMILL": self.binary}, 900)
        path = self.written / "like.json"
        rows = json.loads(path.read_text()) if path.exists() else []
        return {"kind": "like", "rows": rows, **results.here(ROOT)}


def script_of(kind, peer):
    return str(ROOT / "scripts" / "peers" / kind / peer)


def run(command, environment, timeout=240):
    """Runs a command; if it fails, its last line is the reason."""
    # Ends a hanging peer together with every process that it started.
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=timeout)
    except BaseException as error:
        os.killpg(process.pid, 15)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"the command did not end within {timeout} s") from None
        raise
    if process.returncode:
        raise RuntimeError((errors.strip().splitlines() or ["no reason given"])[-1])
