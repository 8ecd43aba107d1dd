"""Draws docs/benchmarks.md, its pictures and the measured parts of other pages from the results.

The measured parts are between `<!-- measured: NAME -->` and `<!-- end of measured -->`.
"""

import re
import statistics

from benchmark_footers import footer_files, footer_table, scaling, without_avx512
from benchmark_page import benchmarks_page
from benchmark_results import size
from benchmark_runs import DATASETS
from benchmark_text import commands, megabytes, missing, memory, nanoseconds, rate, ratio, table, throughput, time

# The values of a row of scripts/peers/flat.toml and nested.toml.
VALUES_A_ROW = {"flat": 8, "nested": 7.92}

PART = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end of measured -->)", re.DOTALL)


def pages(docs, results):
    """The text of each generated file, by its path."""
    drawn = {docs / name: text for name, text in benchmarks_page(results).items()}
    drawn[docs / "footer-scaling.svg"] = scaling(results)
    for path in [docs.parent / "README.md", *sorted(docs.glob("*.md"))]:
        if path not in drawn:
            text = path.read_text()
            filled = PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]](results)}\n\n{found[3]}", text)
            if PART.search(text):
                drawn[path] = filled
    return drawn


def entry(results, name):
    """A result, or None and the reason why it is missing."""
    found = results.get(name)
    if not found:
        return None, "not measured"
    return (None, found["failed"]) if "failed" in found else (found, "")


# What the README compares: the result, the work in words.
README_ROWS = {
    "load-load_floor": "load a table, against two `psql` with ready-made binary COPY",
    "load-load_duckdb": "load a table, against DuckDB",
    "load-load_pgpq": "load a table, against pgpq",
    "load-load_adbc": "load a table, against ADBC",
    "gen-tpch-lineitem": "TPC-H line items, against tpchgen-cli",
    "gen-datablok": "nested contacts, against datablok",
    "footer-footer_polars": "footers of wide files, against polars",
    "footer-footer_pyarrow": "footers of wide files, against pyarrow",
}


def readme(results):
    """A line for each job and a peer, the weakest first."""
    rows = []
    for name, work in README_ROWS.items():
        found, why = entry(results, name)
        if not found:
            rows.append((0, [missing(name, why), "", "", ""]))
            continue
        ours, theirs = found["cases"][0]["sides"]
        times = theirs["wall"]["median"] / ours["wall"]["median"]
        rows.append((times, [work, time(ours["wall"]), time(theirs["wall"]), ratio(times)]))
    lines = table(["job", "Sawmill", "peer", "as fast"], [row for _, row in sorted(rows, key=lambda row: row[0])])
    return "\n".join(lines)


def generator_datasets(results):
    """Bytes before compression that a core makes of each dataset, and what a second thread adds."""
    rows, used, a_value = [], [], {}
    for dataset in DATASETS:
        found, why = entry(results, f"own-dataset-{dataset.replace(' ', '-')}")
        if not found:
            rows.append((0, [missing(dataset, why), "", "", ""]))
            continue
        used.append(found["command"])
        one, two = (case["sides"][0] for case in found["cases"])
        work, cpu = one["work"], one["cpu"]["median"]
        speed = work["bytes"] / cpu / 1e6
        faster = one["wall"]["median"] / two["wall"]["median"]
        a_row = nanoseconds(cpu / work["rows"] * 1e9)
        a_value[dataset] = cpu / work["rows"] / VALUES_A_ROW.get(dataset, 1)
        if dataset not in ("flat", "nested"):
            rows.append((speed, [dataset, f"{speed:,.0f} MB/s", a_row, f"{faster:.2f} x"]))
    rows.sort(key=lambda row: row[0])
    lines = table(["dataset", "a core", "a row", "two threads are as fast as one"], [row for _, row in rows])
    if "flat" in a_value and "nested" in a_value:
        flat, nested = a_value["flat"], a_value["nested"]
        lines += ["", f"A value in a list in a struct takes {nanoseconds(nested * 1e9)}, the same value in a column of "
                  f"the record {nanoseconds(flat * 1e9)}: {nested / flat:.2f} times as long."]
    return "\n".join(lines + commands(used))


def generator_runs(results):
    """Rows per second, CPU and memory of whole runs."""
    rows, used = [], []

    def add(what, name, case):
        side = case["sides"][0]
        wall = side["wall"]["median"]
        rows.append([what, time(side["wall"]), rate(side["work"]["rows"], wall), time(side["cpu"]), memory(side)])
        if results[name]["command"] not in used:
            used.append(results[name]["command"])

    for name, label in [
        ("own-threads", lambda p: f"{p['threads']} thread{'s' if p['threads'] != '1' else ''}, 4 files"),
        ("own-writers", lambda p: f"{p['files']} file{'s' if p['files'] != '1' else ''}, {p['writers']} at a time"),
        ("own-codecs", lambda p: f"compression {p['compression']}"),
        ("own-memory-10M", lambda p: "10 M rows to /dev/null"),
        ("own-memory-1B", lambda p: "1 B rows to /dev/null"),
        ("own-wide", lambda p: "10,000 columns in 20 row groups"),
    ]:
        found, why = entry(results, name)
        if not found:
            rows.append([missing(name, why), "", "", "", ""])
            continue
        for case in found["cases"]:
            add(label(case["parameters"]), name, case)
    lines = table(["run", "time", "rows/s", "CPU", "peak memory"], rows)
    found, _ = entry(results, "own-threads")
    if found:
        walls = {case["parameters"]["threads"]: case["sides"][0]["wall"]["median"] for case in found["cases"]}
        lines += ["", f"Two threads are {ratio(walls['1'] / walls['2'])} as fast as one."]
    found, _ = entry(results, "own-writers")
    if found:
        cpu = [case["sides"][0]["cpu"]["median"] for case in found["cases"]]
        spread = 100 * (max(cpu) / min(cpu) - 1)
        lines += ["", f"CPU time over numbers of files and writers differs by at most {spread:.1f} %."]
    return "\n".join(lines + commands(used))


def whole_generators(results, names):
    """Rows of a table of whole runs beside other programs, the worst first, and their commands."""
    rows, used = [], []
    for name in names:
        found, why = entry(results, name)
        if not found:
            rows.append((0, [missing(name, why), "", "", "", "", ""]))
            continue
        ours, theirs = found["cases"][0]["sides"]
        times = theirs["wall"]["median"] / ours["wall"]["median"]
        of = f" {name.removeprefix('gen-tpch-')}" if name.startswith("gen-tpch-") else ""
        what = f"{theirs['name']}{of}, {ours['work']['rows']:,} rows"
        sizes = [megabytes(size(ours)), megabytes(size(theirs))]
        rows.append((times, [what, time(ours["wall"]), time(theirs["wall"]), *sizes, ratio(times)]))
        used.append(found["command"])
    return [row for _, row in sorted(rows, key=lambda row: row[0])], used


PEER_COLUMNS = ["peer", "ours", "theirs", "bytes of ours", "of theirs", "ours is as fast"]


def generator_tpch(results):
    """The tables of TPC-H beside tpchgen-cli: the same rows."""
    tables = ["lineitem", "orders", "partsupp", "customer"]
    rows, used = whole_generators(results, [f"gen-tpch-{table}" for table in tables])
    return "\n".join(table(PEER_COLUMNS, rows) + commands(used))


def generator_flat(results):
    """A flat table beside general tools."""
    rows, used = whole_generators(results, ["gen-duckdb", "gen-polars", "gen-pyarrow"])
    return "\n".join(table(PEER_COLUMNS, rows) + commands(used))


def generator_peers(results):
    """Comparison with other generators of the same records."""
    rows, used = whole_generators(results, ["gen-datablok", "gen-arrow-writer"])
    found, why = entry(results, "micro")
    medians = {(b["group"], b["function"]): b["nanoseconds"] for b in found["benchmarks"]} if found else {}
    for codec in ["none", "snappy", "zstd"]:
        for threads in ["1", "2"]:
            ours = medians.get((f"contacts/{codec}", f"sawmill/{threads}"))
            theirs = medians.get((f"contacts/{codec}", f"ArrowWriter 60/{threads}"))
            if ours and theirs:
                what = f"ArrowWriter pipeline, compression {codec}, threads: {threads}, files not kept"
                rows.append([what, nanoseconds(ours), nanoseconds(theirs), "", "", ratio(theirs / ours)])
    lines = table(PEER_COLUMNS, rows)
    return "\n".join(lines + commands(used + (["cargo bench -p sawmill-benches --bench contacts"] if medians else [])))


def generator_values(results):
    """The cost of drawing one value."""
    found, why = entry(results, "micro")
    if not found:
        return missing("micro", why)
    rows = []
    for benchmark in found["benchmarks"]:
        if benchmark["group"] in ("value", "draw") and benchmark["throughput"]:
            what = "drawn alone" if benchmark["group"] == "value" else "drawn, shredded and encoded"
            each = benchmark["nanoseconds"] / benchmark["throughput"][1]
            rows.append([benchmark["function"], what, f"{each:.2f} ns"])
    return "\n".join(
        table(["values", "what", "each"], rows) + commands(["cargo bench -p sawmill-benches --bench generator"])
    )


# What the generator's modules do, for readers of the table.
MODULES = {
    "shred": "nulls, lengths and levels (shred)",
    "rng": "random bits (rng)",
    "weights": "look-ups in tables of weights (weights)",
    "levels": "encoding of levels and indices (levels)",
    "person_name": "names (person_name)",
    "template": "unique strings (template)",
    "column_chunk": "pages and their sizes (column_chunk)",
    "statistics": "bounds (statistics)",
    "content_sum": "checksums of the files' bytes (checksum)",
    "output": "copying into the page cache (output)",
}


def generator_samples(results):
    """Shares of CPU time by module, before and after each larger change."""
    names = [name for name in sorted(results) if name.startswith("before-")] + ["own-samples"]
    columns, modules = [], []
    for name in names:
        found, why = entry(results, name)
        if not found:
            continue
        side = found["cases"][0]["sides"][0]
        total = sum(side["samples"].values())
        columns.append((found, side, {module: n / total for module, n in side["samples"].items()}))
    if not columns:
        return missing("own-samples", "not measured")
    last = columns[-1][2]
    for module in sorted({m for _, _, shares in columns for m in shares}, key=lambda m: -last.get(m, 0)):
        if max(shares.get(module, 0) for _, _, shares in columns) >= 0.01:
            modules.append(module)
    head = ["share of CPU time"] + [f"at {(found['commit'] or {}).get('hash', '')[:8]}" for found, _, _ in columns]
    rows = [[MODULES.get(m, m)] + [f"{100 * shares.get(m, 0):.1f} %" for _, _, shares in columns] for m in modules]
    walls = [side["wall"]["median"] / side["work"]["rows"] * 1e9 for _, side, _ in columns]
    rows.append(["**time of a row, one thread**"] + [f"**{wall:.1f} ns**" for wall in walls])
    return "\n".join(table(head, rows) + commands([columns[-1][0]["command"]]))


def spans(results):
    """The cost of a span, and its share of whole runs."""
    found, why = entry(results, "micro")
    if not found:
        return missing("micro", why)
    medians = {b["function"]: b["nanoseconds"] for b in found["benchmarks"] if b["group"] == "span"}
    lines = table(["", "each"], [[name.replace("_", " "), nanoseconds(cost)] for name, cost in medians.items()])
    rows = []
    for name in ["own-threads", "own-memory-1B", "own-wide", "footer-footer_pyarrow", "load-load_floor", "load-load_adbc"]:
        run, _ = entry(results, name)
        if not run or "attached" not in medians:
            continue
        side = run["cases"][-1]["sides"][0]
        if side["spans_cpu"]:
            cost = side["spans"] * medians["attached"] / 1e9
            what = run["command"].split(" --")[0].removeprefix("sawmill bench ")
            rows.append([f"`{what}`", f"{side['spans']:,}", f"{100 * cost / side['spans_cpu']:.3f} %"])
    lines += ["", "The number of spans in whole runs, times the cost of an attached span, divided by the CPU time of the run:", ""]
    lines += table(["run", "spans", "share"], rows)
    return "\n".join(lines + commands(["cargo bench -p sawmill-benches --bench span"]))


def crate_rows(results):
    """The rate of encoding rows as requests."""
    found, why = entry(results, "micro")
    rows = [
        [benchmark["group"], benchmark["function"], throughput(benchmark["throughput"], benchmark["nanoseconds"])]
        for benchmark in (found["benchmarks"] if found else [])
        if benchmark["group"].startswith("crate")
    ]
    if not rows:
        return missing("micro", why or "not measured")
    lines = table(["rows", "as", "of the body"], rows)
    return "\n".join(lines + commands(["cargo bench -p sawmill-benches --bench crate_rows"]))


def crate_load(results):
    """Whole loads compared with their floor."""
    found, why = entry(results, "turns")
    rows = []
    for each in found["tables"] if found else []:
        for load in each.get("loads", []):
            if load["way"] != "floor":
                share = f"{100 * load['client_cpu'] / load['server_cpu']:.1f} %" if load["server_cpu"] else ""
                cells = [each["title"], f"{each['rows']:,}", load["transport"] + (" with a row key" if "key" in load["way"] else ""), nanoseconds(load["seconds"] * 1e9)]
                rows.append(cells + [f"{load['of_floor']:.3f}", share])
    if not rows:
        return missing("turns", why or "not measured")
    head = ["server", "rows", "transport", "wall time", "of the floor", "client CPU, of the server's"]
    return "\n".join(table(head, rows) + commands(["cargo bench -p sawmill-benches --bench crate_load"]))


def load_tables(results):
    """Loads into four kinds of tables over an increasing number of connections."""
    found, why = entry(results, "load-tables")
    if not found:
        return missing("load-tables", why)
    kinds = {}
    for case in found["cases"]:
        parameters, side = case["parameters"], case["sides"][0]
        key = "primary key" if parameters["pk"] == "yes" else "no key"
        kinds.setdefault(f"{parameters['table']}, {key}", []).append((parameters["degree"], side))
    lines = []
    for kind, sides in kinds.items():
        first = sides[0][1]["wall"]["median"]
        rows = []
        for degree, side in sides:
            wall = side["wall"]["median"]
            times = [time(side["wall"]), f"{first / wall:.2f} x", rate(side["work"]["rows"], wall)]
            rows.append([degree, *times, time(side["cpu"])])
        lines += [f"**{kind}**", "", *table(["degree", "time", "speed-up", "rows/s", "CPU of the client"], rows), ""]
    return "\n".join(lines[:-1] + commands([found["command"]]))


def load_kinds(results):
    """Loads into four kinds of tables compared with peers."""
    tables, peers, absent, used, machines = {}, [], [], [], set()
    for name in sorted(name for name in results if name.startswith("kinds-")):
        _, script, rows_of = name.split("-")
        found, why = entry(results, name)
        if not found:
            absent.append(f"{script.removeprefix('load_')}, {rows_of}: {why}.")
            continue
        machines.add(found["machine"])
        for case in found["cases"]:
            kind = f"{case['parameters']['table']}, {'primary key' if case['parameters']['pk'] == 'yes' else 'no key'}"
            ours, theirs = case["sides"]
            # Slow peers get their own rows, because they load fewer rows.
            row = tables.setdefault((rows_of, kind, ours["work"]["rows"]), {"ours": f"{time(ours['wall'])}, {megabytes(size(ours))}"})
            times = theirs["wall"]["median"] / ours["wall"]["median"]
            row[theirs["name"]] = f"{ratio(times)}, {megabytes(size(theirs))}"
            if theirs["name"] not in peers:
                peers.append(theirs["name"])
        used.append(found["command"])
    if not tables:
        return missing("load-kinds", "not measured")
    rows = [
        [f"{rows_of}, {count:,}", kind, row["ours"]] + [row.get(peer, "") for peer in peers]
        for (rows_of, kind, count), row in sorted(tables.items(), key=lambda table: (-table[0][2], table[0][:2]))
    ]
    head = ["rows of", "table", "time, table left"] + [f"as fast as {peer}, table left" for peer in peers]
    lines = [f"On {'; '.join(sorted(machines))}:", ""] + table(head, rows)
    return "\n".join(lines + [f"\n{each}" for each in absent] + commands(used))


def load_floor(results):
    """Loads into PostgreSQL compared with a client that only sends."""
    found, why = entry(results, "postgres-floor")
    rows = []
    for each in found["tables"] if found else []:
        for load in each["postgres"]:
            cells = [f"{each['title']}, {each['rows']:,}", load["table"], load["way"], nanoseconds(load["seconds"] * 1e9)]
            cells += [f"{load['of_floor']:.3f}", f"{load['client_cpu']:.2f} s", f"{load['machine_cpu']:.2f} s"]
            rows.append(cells)
    if not rows:
        return missing("postgres-floor", why or "not measured")
    head = ["rows", "table", "way", "wall time", "of the floor", "CPU of the client", "of all"]
    lines = table(head, rows)
    checkpoints, sums = [], []
    for each in found["tables"]:
        ways = {load["way"]: load for load in each["postgres"]}
        whole, small = ways["loader"], ways["loader, small units"]
        loader = whole["seconds"]
        a_unit = (small["seconds"] - loader) / (small["units"] - whole["units"])
        checkpoints.append(100 * a_unit * whole["units"] / loader)
        speed = content_sum_speed(results)
        if speed:
            sums.append(100 * each["bytes"] / speed / each["degree"] / loader)
    lines += ["", "All checkpoints of a load take %.1f %% of its time in the median over these tables (%.1f to %.1f %%), judged by"
              % (statistics.median(checkpoints), min(checkpoints), max(checkpoints)),
              "the extra time of each small unit."]
    if sums:
        lines += ["The content sum takes %.1f to %.1f %% of a load, computed from its speed among the" % (min(sums), max(sums)),
                  "[hot paths](benchmarks.md), on each connection."]
    return "\n".join(lines + commands(["cargo bench -p sawmill-benches --bench load_floor"]))


def content_sum_speed(results):
    """The content sum's speed on taxi rows in bytes per second, on one thread."""
    found, _ = entry(results, "micro")
    for each in found["benchmarks"] if found else []:
        if (each["group"], each["function"]) == ("copy/taxi", "content sum alone"):
            return each["throughput"][1] / (each["nanoseconds"] / 1e9)
    return None


def crate_settings(results):
    """Results recorded once on a real server."""
    found, why = entry(results, "cratedb-settings")
    if not found:
        return missing("cratedb-settings", why)
    lines = [found["of"], ""]
    for each in found["tables"]:
        lines += table(each["head"], each["rows"]) + [""]
    return "\n".join(lines).rstrip()


PARTS = {
    "readme": readme,
    "crate-rows": crate_rows,
    "crate-load": crate_load,
    "crate-settings": crate_settings,
    "load-tables": load_tables,
    "load-kinds": load_kinds,
    "load-floor": load_floor,
    "generator-datasets": generator_datasets,
    "generator-runs": generator_runs,
    "generator-peers": generator_peers,
    "generator-tpch": generator_tpch,
    "generator-flat": generator_flat,
    "generator-values": generator_values,
    "generator-samples": generator_samples,
    "spans": spans,
    "footer-table": footer_table,
    "footer-without": without_avx512,
    "footer-files": footer_files,
}
