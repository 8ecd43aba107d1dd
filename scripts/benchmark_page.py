"""docs/benchmarks.md and its pictures."""

from benchmark_picture import bars, lines
from benchmark_results import size
from benchmark_text import commands, megabytes, memory, missing, nanoseconds, table, throughput, time

AREAS = [
    (
        "gen-",
        "Generation",
        "Whole runs that write files; their rows and bytes are counted. Both sides are timed from the start of their "
        "process to its end.",
    ),
    (
        "footer-",
        "Footers",
        "Each side reads and decodes all footers in a folder of wide files, one after the other; both "
        "sides are timed from the start of their process to its end, which includes the start of Python for peers. "
        "[footer.md](footer.md) compares the decoders alone.",
    ),
    (
        "load-",
        "Loading into PostgreSQL",
        "Each side loads the same rows into an empty table with the same columns; a peer gets a figure only if its row count "
        "and content match. Bytes are the size of the table that each side left, including indexes "
        "(`pg_total_relation_size`). Both sides are timed from the start of their process to its end (the floor "
        "runs one psql per connection).",
    ),
]
# Results of loads that are not comparisons.
OURS_ALONE = ("load-tables",)
# Peers of the hot paths, by the prefixes of their names.
PEERS = ("ArrowWriter", "pgpq", "parquet60")


def benchmarks_page(results):
    """The page and its pictures by their names in the documentation folder."""
    drawn = {}
    text = ["# Benchmarks", "", "Drawn by `scripts/benchmarks` from `benchmarks/results.json`; do not edit.", ""]
    text += head(results) + weakest(results)
    for prefix, title, note in AREAS:
        names = [name for name in results if name.startswith(prefix) and name not in OURS_ALONE]
        if names:
            text += area(prefix, title, note, sorted(names), results, drawn)
    if "load-tables" in results:
        text += tables(results["load-tables"], drawn)
    text += hot_paths(results.get("micro"))
    drawn["benchmarks.md"] = "\n".join(text).rstrip() + "\n"
    return drawn


def head(results):
    """Machine, versions and commit of the newest run; results of earlier runs are listed separately."""
    # Results recorded once, on a server that is not available here, state their own circumstances.
    runs = {name: entry for name, entry in results.items() if "failed" not in entry and entry["kind"] != "recorded"}
    if not runs:
        return ["No results.", ""]
    commit = lambda entry: (entry.get("commit") or {}).get("hash", "")
    last = commit(max(runs.values(), key=lambda entry: entry["started"]))
    this = [entry for entry in runs.values() if commit(entry) == last]
    earlier = {name: entry for name, entry in runs.items() if commit(entry) != last}
    # `sawmill bench` reports more about the machine than the other benchmarks.
    detailed = [entry for entry in this if entry["kind"] == "sawmill bench"] or this
    unique = lambda values: "; ".join(sorted({value for value in values if value}))
    versions = {}
    for entry in this:
        versions.update(entry.get("versions", {}))
    changed = " with changes" if any((entry.get("commit") or {}).get("changed") for entry in this) else ""
    started = sorted(entry["started"] for entry in this)
    busy = max(entry["load"] for entry in this)
    rows = [
        ["machine", unique(entry.get("machine") for entry in detailed)],
        ["files", unique(disk for entry in this for disk in entry.get("disks", []))],
        ["versions", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))],
        ["commit", (last[:12] or "none") + changed],
        ["measured", f"{started[0]} to {started[-1]}"],
        ["machine load", f"up to {busy:.1f} right after a benchmark, including its own work"],
    ]
    if earlier:
        named = [f"{name} ({entry['started'][:10]}, {commit(entry)[:8]})" for name, entry in sorted(earlier.items())]
        rows.append(["from earlier runs", ", ".join(named)])
    return table(["", ""], rows) + [
        "",
        "Figures are medians. An interval is the 95 % interval of the ratio over pairs of interleaved runs; with "
        "fewer than five pairs it is wide. A verdict requires the whole interval to be on one side of 1. The rows "
        "where Sawmill does worst come first.",
        "",
    ]


def compared(results):
    """All comparisons: our time as a multiple of the peer's, the work, the peer, and the verdict."""
    for name, entry in results.items():
        if name.startswith(("gen-", "footer-", "load-", "kinds-")) and "failed" not in entry:
            for case in entry["cases"]:
                for found, theirs in zip(case["comparisons"], case["sides"][1:]):
                    what = " ".join([name, *(f"{key}={value}" for key, value in sorted(case["parameters"].items()))])
                    yield found["ratio"], what, theirs["name"], comparison(found)
    for ratio, what, _, peer, _ in pairs(results.get("micro")):
        yield ratio, what, peer, f"{1 / ratio:.2f} x as fast"


def weakest(results):
    """The comparisons in which ours takes more than nine tenths of the peer's time."""
    every = sorted(compared(results), key=lambda found: -found[0])
    if not every:
        return []
    rows = [[what, peer, verdict] for ratio, what, peer, verdict in every if ratio > 0.9]
    text = ["## Where Sawmill is slower or hardly faster", ""]
    count = f"Of {len(every)} comparisons, those in which Sawmill takes more than 0.9 times the time of its peer"
    return text + ([f"{count}:", "", *table(["what", "peer", "ours is"], rows)] if rows else [f"{count}: none."]) + [""]


def area(prefix, title, note, names, results, drawn):
    text = [f"## {title}", "", note, ""]
    entries = {name: results[name] for name in names if "failed" not in results[name]}
    rows, charted, first = [], [], None
    for name, entry in sorted(entries.items(), key=lambda named: -named[1]["cases"][0]["comparisons"][0]["ratio"]):
        case = entry["cases"][0]
        ours, theirs = case["sides"][0], case["sides"][1]
        cells = [theirs["name"], work(ours), written(ours, theirs), time(ours["wall"]), time(theirs["wall"])]
        cells += [time(ours["cpu"]), time(theirs["cpu"]), memory(ours), memory(theirs)]
        rows.append(cells + [comparison(case["comparisons"][0])])
        # All bars of a picture represent the same work.
        if not charted or work(ours) == first:
            first = work(ours)
            charted.append((theirs["name"], ours["wall"], theirs["wall"]))
    columns = ["peer", "work", "bytes: ours, theirs", "ours", "theirs", "ours, CPU", "theirs, CPU", "ours, memory", "theirs, memory"]
    if rows:
        text += table(columns + ["ours is"], rows) + [""]
    text += [f"- {missing(name.removeprefix(prefix), results[name]['failed'])}" for name in names if name not in entries]
    if charted:
        picture = f"benchmarks/{prefix.rstrip('-')}.svg"
        sides = []
        for peer, ours, theirs in charted:
            sides += [(f"sawmill, beside {peer}", ours, True), (peer, theirs, False)]
        drawn[picture] = bars(f"{title}: seconds", sides)
        text += ["", f"![{title}]({picture})"]
    return text + commands(sorted(entry["command"] for entry in entries.values())) + [""]


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


def pairs(entry):
    """Hot paths with a peer in the same binary: ours / theirs, what, ours, the peer's name, and theirs."""
    measured = entry["benchmarks"] if entry and "failed" not in entry else []
    for ours in measured:
        own = next((part for part in ours["function"].split("/") if part.startswith("sawmill")), None)
        for theirs in measured if own else []:
            name = next((part for part in theirs["function"].split("/") if part.startswith(PEERS)), None)
            rest = lambda found, part: [found["group"], *(each for each in found["function"].split("/") if each != part)]
            if name and rest(ours, own) == rest(theirs, name):
                what = "/".join(rest(ours, own)) + own.removeprefix("sawmill")
                yield ours["nanoseconds"] / theirs["nanoseconds"], what, ours, name, theirs


def hot_paths(entry):
    text = ["## Hot paths", ""]
    if not entry:
        return []
    if "failed" in entry:
        return text + [missing("micro", entry["failed"]), ""]
    text += ["By criterion, in one process (`cargo bench`); medians with their 95 % intervals.", ""]
    beside = sorted(pairs(entry), key=lambda pair: -pair[0])
    paired = [id(each) for _, _, ours, _, theirs in beside for each in (ours, theirs)]
    rows = [[what, peer, spread(ours), spread(theirs), f"{1 / ratio:.2f} x as fast"] for ratio, what, ours, peer, theirs in beside]
    text += table(["path", "peer", "ours", "theirs", "ours is"], rows) + ["", "Without a peer:", ""]
    alone = [
        [found["group"], found["function"], spread(found), throughput(found["throughput"], found["nanoseconds"])]
        for found in entry["benchmarks"]
        if id(found) not in paired
    ]
    return text + table(["path", "what", "time", "rate"], alone) + [""]


def spread(found):
    low, high = found["interval"]
    return f"{nanoseconds(found['nanoseconds'])} ({nanoseconds(low)} to {nanoseconds(high)})"


def work(side):
    rows = side["work"].get("rows")
    return f"{rows:,} rows" if rows else side["work"].get("checksum", "")


def written(*sides):
    """The bytes that each side produced; decoders produce none."""
    made = [size(side) for side in sides]
    return ", ".join(map(megabytes, made)) if all(made) else ""


def comparison(found):
    """How much faster ours is: the inverse of ours / theirs."""
    interval = found.get("interval")
    bounds = f" ({1 / interval['high']:.2f} to {1 / interval['low']:.2f})" if interval and interval["low"] > 0 else ""
    return f"{1 / found['ratio']:.2f} x as fast{bounds}: {found['verdict'].replace('_', ' ')}"
