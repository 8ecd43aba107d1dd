"""Draws docs/benchmarks.md, its pictures and the measured parts of other pages from the results.

The measured parts are between `<!-- measured: NAME -->` and `<!-- end of measured -->`.
"""

import re

from .footers import footer_files, footer_table
from .page import benchmarks_page
from .text import commands, missing, memory, nanoseconds, rate, ratio, table, time

PART = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end of measured -->)", re.DOTALL)


def pages(docs, results):
    """The text of each generated file, by its path."""
    drawn = {docs / name: text for name, text in benchmarks_page(results).items()}
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
        times = 1 / found["cases"][0]["comparisons"][0]["ratio"]
        rows.append((times, [work, time(ours["wall"]), time(theirs["wall"]), ratio(times)]))
    lines = table(["job", "Sawmill", "peer", "as fast"], [row for _, row in sorted(rows, key=lambda row: row[0])])
    return "\n".join(lines)


def generator_runs(results):
    """Rows per second, CPU and memory of whole runs."""
    rows, used = [], []

    def add(what, case):
        side = case["sides"][0]
        wall = side["wall"]["median"]
        rows.append([what, time(side["wall"]), rate(side["work"]["rows"], wall), time(side["cpu"]), memory(side)])

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
        used.append(name)
        for case in found["cases"]:
            add(label(case["parameters"]), case)
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
    return "\n".join(lines + commands(["scripts/benchmarks --only " + " --only ".join(used)]))


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


def crate_settings(results):
    """Results recorded once on a real server."""
    found, why = entry(results, "cratedb-settings")
    if not found:
        return missing("cratedb-settings", why)
    lines = [found["of"], ""]
    for each in found["tables"]:
        lines += table(each["head"], each["rows"]) + [""]
    return "\n".join(lines).rstrip()


def drive_pgbench(results):
    """CPU time of an operation, and latencies, beside pgbench; the weakest row first."""
    found, why = entry(results, "drive-pgbench")
    if not found:
        return missing("drive-pgbench", why)
    programs = ["sawmill drive", "pgbench -j 8", "pgbench -j 1"]
    rows = []
    for row in found["rows"]:
        ours, *theirs = (row["sides"][program] for program in programs)
        times = min(min(figures) / own for own, figures in zip(ours, zip(*theirs)))
        cells = [", ".join(f"{figure:.0f}" for figure in side) for side in (ours, *theirs)]
        rows.append((times, [f"{row['work']}, {row['rate']:,} a second", *cells]))
    lines = table(["load", *(f"`{program}`" for program in programs)], [row for _, row in sorted(rows)])
    return "\n".join(lines)


def like(results):
    """Twins of public data sets beside SDV's, the weakest row first."""
    found, why = entry(results, "like")
    if not found:
        return missing("like", why)
    digits = {"pairs": 3, "columns": 3, "cpu": 2}
    # Some results are of the distances alone.
    digits = {name: n for name, n in digits.items() if all(name in row["sawmill"] for row in found["rows"])}
    cells = lambda row: [f"{row[side][name]:.{n}f}" for name, n in digits.items() for side in ("sawmill", "sdv")]
    head = ["dataset", *(word for name in digits for word in (name, "SDV"))]
    lines = [head, ["-"] * len(head), *([row["data"], *cells(row)] for row in found["rows"])]
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)


PARTS = {
    "like": like,
    "drive-pgbench": drive_pgbench,
    "readme": readme,
    "crate-settings": crate_settings,
    "generator-runs": generator_runs,
    "spans": spans,
    "footer-without": footer_table,
    "footer-files": footer_files,
}
