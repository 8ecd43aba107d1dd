"""docs/benchmarks.md and its pictures."""

from benchmark_picture import bars, lines
from benchmark_text import commands, memory, missing, nanoseconds, table, throughput, time

AREAS = [
    (
        "gen-",
        "Generation",
        "Whole runs, files written, their rows and bytes counted. Both sides are timed from the start of their "
        "process to its end.",
    ),
    (
        "footer-",
        "Footers",
        "All footers of a folder of wide files are read and decoded, one file after the other; both "
        "sides are timed from the start of their process to its end, peers with the start of Python. [footer.md](footer.md) has decoders alone.",
    ),
    (
        "load-",
        "Loading into PostgreSQL",
        "The same rows into an empty table of the same columns; what a peer left there is counted, and its "
        "content compared, or there is no figure. Both sides are timed from the start of their "
        "process to its end (of the floor, one psql a connection).",
    ),
]
# The order of peers; others follow by name.
ORDER = ["gen-datablok", "gen-arrow-writer", "gen-tpchgen-cli", "load-load_floor", "load-load_psql"]


def benchmarks_page(results):
    """The page and its pictures, by their names in the folder of the documentation."""
    drawn = {}
    text = ["# Benchmarks", "", "Drawn by `scripts/benchmarks` from `benchmarks/results.json`; do not edit.", ""]
    text += head(results)
    for prefix, title, note in AREAS:
        names = [name for name in results if name.startswith(prefix) and name not in ("load-tables", "load-strategies")]
        names.sort(key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
        if names:
            text += area(prefix, title, note, names, results, drawn)
    if "load-tables" in results:
        text += tables(results["load-tables"], drawn)
    text += hot_paths(results.get("micro"))
    drawn["benchmarks.md"] = "\n".join(text).rstrip() + "\n"
    return drawn


def head(results):
    # What was recorded once, of a server that is not at hand, says itself where that was.
    runs = [entry for entry in results.values() if "failed" not in entry and entry["kind"] != "recorded"]
    if not runs:
        return ["There are no results.", ""]
    unique = lambda values: "; ".join(sorted({value for value in values if value}))
    versions = {}
    for entry in sorted(runs, key=lambda entry: entry["started"]):
        versions.update(entry.get("versions", {}))
    commits = unique(
        entry["commit"]["hash"][:12] + (" with changes" if entry["commit"]["changed"] else "")
        for entry in runs
        if entry["commit"]
    )
    started = sorted(entry["started"] for entry in runs)
    busy = max(entry["load"] for entry in runs)
    rows = [
        ["machine", unique(entry.get("machine") for entry in runs)],
        ["files", unique(disk for entry in runs for disk in entry.get("disks", []))],
        ["versions", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))],
        ["commit", commits],
        ["measured", f"{started[0]} to {started[-1]}"],
        ["load of the machine", f"up to {busy:.1f} right after a benchmark, its own work included"],
    ]
    return table(["", ""], rows) + [
        "",
        "Medians. An interval is the 95 % interval of the ratio of pairs of runs that were made in turn; with "
        "fewer than five pairs it is wide. A verdict is given where the whole interval is on one side of 1.",
        "",
    ]


def area(prefix, title, note, names, results, drawn):
    text = [f"## {title}", "", note, ""]
    rows, charted, first = [], [], None
    for name in names:
        entry = results[name]
        if "failed" in entry:
            rows.append([name.removeprefix(prefix), entry["failed"]] + [""] * 8)
            continue
        case = entry["cases"][0]
        ours, theirs = case["sides"][0], case["sides"][1]
        cells = [theirs["name"], work(ours), written(ours, theirs), time(ours["wall"]), time(theirs["wall"])]
        cells += [time(ours["cpu"]), time(theirs["cpu"]), memory(ours), memory(theirs)]
        rows.append(cells + [comparison(case["comparisons"][0])])
        # Bars of one picture stand for the same work.
        if not charted or work(ours) == first:
            first = work(ours)
            charted.append((theirs["name"], ours["wall"], theirs["wall"]))
    columns = ["peer", "work", "bytes of ours, of theirs", "ours", "theirs", "ours, CPU", "theirs, CPU", "ours, memory", "theirs, memory"]
    text += table(columns + ["ours is"], rows)
    if charted:
        picture = f"benchmarks/{prefix.rstrip('-')}.svg"
        sides = []
        for peer, ours, theirs in charted:
            sides += [(f"sawmill, beside {peer}", ours, True), (peer, theirs, False)]
        drawn[picture] = bars(f"{title}: seconds", sides)
        text += ["", f"![{title}]({picture})"]
    return text + commands(sorted({results[name]["command"] for name in names if "command" in results[name]})) + [""]


def tables(entry, drawn):
    text = ["## Four kinds of tables", ""]
    if "failed" in entry:
        return text + [missing("tables", entry["failed"]), ""]
    text += ["Loads over 1 to 8 connections into logged and unlogged tables, with and without a primary key.", ""]
    kinds, series = {}, []
    for case in entry["cases"]:
        kind = (case["parameters"]["table"], case["parameters"]["pk"])
        kinds.setdefault(kind, []).append((int(case["parameters"]["degree"]), case["sides"][0]["wall"]))
    for (name, key), points in kinds.items():
        title = f"{name}, {'primary key' if key == 'yes' else 'no key'}"
        first = points[0][1]["median"]
        rows = [[str(n), f"{wall['median']:.3f}", f"{first / wall['median']:.2f} x"] for n, wall in points]
        text += [f"**{title}**", "", *table(["degree", "seconds", "speed-up"], rows), ""]
        series.append((title, points))
    drawn["benchmarks/tables.svg"] = lines("Seconds over degree", series)
    text += ["![Seconds over degree](benchmarks/tables.svg)"]
    return text + commands([entry["command"]]) + [""]


def hot_paths(entry):
    text = ["## Hot paths", ""]
    if not entry:
        return []
    if "failed" in entry:
        return text + [missing("micro", entry["failed"]), ""]
    text += ["By criterion, in one process (`cargo bench`); medians with their 95 % intervals.", ""]
    rows = []
    for found in entry["benchmarks"]:
        low, high = found["interval"]
        middle = found["nanoseconds"]
        spread = f"{nanoseconds(middle)} ({nanoseconds(low)} to {nanoseconds(high)})"
        rows.append([found["group"], found["function"], spread, throughput(found["throughput"], middle)])
    return text + table(["path", "what", "time", "rate"], rows) + [""]


def work(side):
    rows = side["work"].get("rows")
    return f"{rows:,} rows" if rows else side["work"].get("checksum", "")


def written(*sides):
    """The bytes that each side made; loads into the same table are compared by their rows and content alone."""
    made = [side["work"].get("bytes") for side in sides]
    return ", ".join(f"{count / 1e6:,.1f} MB" for count in made) if all(made) else ""


def comparison(found):
    """How much faster ours is: the inverse of ours / theirs."""
    interval = found.get("interval")
    bounds = f" ({1 / interval['high']:.2f} to {1 / interval['low']:.2f})" if interval and interval["low"] > 0 else ""
    return f"{1 / found['ratio']:.2f} x as fast{bounds}: {found['verdict'].replace('_', ' ')}"
