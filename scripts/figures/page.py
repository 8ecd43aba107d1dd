"""docs/benchmarks.md and its pictures."""

import re

from .picture import bars, lines
from .results import size
from .text import missing, nanoseconds, table, time

AREAS = [
    ("gen-", "Generation", "Whole runs that write files; the rows and bytes of both sides are counted."),
    (
        "footer-",
        "Footers",
        "Each side decodes all footers in a folder of wide files, one after the other. [footer.md](footer.md#figures) "
        "compares the decoders alone.",
    ),
    (
        "load-",
        "Loading into PostgreSQL",
        "Each side loads the same rows into an empty table with the same columns. A peer gets a figure only if its row "
        "count and content match. Bytes are the size of the table that each side left, with its indexes. The floor runs "
        "one `psql` per connection, which sends ready-made binary COPY.",
    ),
]
# Results of loads that are not comparisons.
OURS_ALONE = ("load-tables",)
# More of a peer's time than this is a weak result.
WEAK = 0.9
PATHS = ["what", "peer", "as fast", "ours", "theirs"]
# Peers of the hot paths, by the prefixes of their names.
PEERS = ("ArrowWriter", "pgpq", "parquet60")


def benchmarks_page(results):
    """The page and its pictures by their names in the documentation folder."""
    drawn = {}
    text = [
        "# Benchmarks",
        "",
        "Sawmill beside its peers, the weakest rows first. `scripts/benchmarks` draws this page from "
        "[results.json](benchmarks/results.json), which also has the command, commit and machine of each result; do not edit "
        "it. `scripts/benchmarks --only NAME` measures one again.",
        "",
    ]
    text += weakest(results)
    for prefix, title, note in AREAS:
        names = [name for name in results if name.startswith(prefix) and name not in OURS_ALONE]
        if names:
            text += area(prefix, title, note, sorted(names), results, drawn)
    if "load-tables" in results:
        text += tables(results["load-tables"], drawn)
    text += datasets(results) + other_hot_paths(results) + head(results)
    drawn["benchmarks.md"] = "\n".join(text).rstrip() + "\n"
    return drawn


def head(results):
    """Machine, versions and commit of the newest run, and the names of earlier results."""
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
        kinds = sorted({re.sub("^(own-dataset)-.*", r"\1", name) for name in earlier})
        rows.append(["from earlier commits", ", ".join(kinds)])
    return ["## Machine and versions", ""] + table(["", ""], rows) + [""]


def compared(results):
    """All comparisons: our time as a multiple of the peer's, the work, the peer, the verdict, and both times."""
    for name, entry in results.items():
        if name.startswith(("gen-", "footer-", "load-", "kinds-")) and "failed" not in entry:
            for case in entry["cases"]:
                for found, theirs in zip(case["comparisons"], case["sides"][1:]):
                    what = " ".join([name, *(f"{key}={value}" for key, value in sorted(case["parameters"].items()))])
                    walls = [time(case["sides"][0]["wall"]), time(theirs["wall"])]
                    yield found["ratio"], what, theirs["name"], comparison(found), *walls
    yield from hot_paths(results)


def weakest(results):
    """The comparisons in which ours hardly wins."""
    every = sorted(compared(results), key=lambda found: -found[0])
    if not every:
        return []
    rows = [found[1:] for found in every if found[0] > WEAK]
    text = ["## Where Sawmill is slower or hardly faster", ""]
    count = f"Of {len(every)} comparisons, those in which Sawmill takes more than {WEAK} times the time of its peer"
    text += [f"{count}:", "", *table(PATHS, rows)] if rows else [f"{count}: none."]
    return text + [
        "",
        "Figures are medians; \"0.9 x\" means that Sawmill is 0.9 times as fast. Whole runs are timed from the start of a "
        "process to its end, with the start of Python if the peer needs it. "
        "An interval is the 95 % interval of the ratio over pairs of interleaved runs. With fewer than five pairs it is "
        "wide. \"Slower\" requires the whole interval to be below 1.",
        "",
    ]


def area(prefix, title, note, names, results, drawn):
    text = [f"## {title}", "", note, ""]
    entries = {name: results[name] for name in names if "failed" not in results[name]}
    rows, charted, first = [], [], None
    for name, entry in sorted(entries.items(), key=lambda named: -named[1]["cases"][0]["comparisons"][0]["ratio"]):
        case = entry["cases"][0]
        ours, theirs = case["sides"][0], case["sides"][1]
        what = f"{theirs['name']}, {name.removeprefix('gen-tpch-')}" if name.startswith("gen-tpch-") else theirs["name"]
        cells = [time(ours["wall"]), time(theirs["wall"]), peaks(ours, theirs), written(ours, theirs)]
        rows.append([what, comparison(case["comparisons"][0]), work(ours), *cells])
        # All bars of a picture represent the same work.
        if not charted or work(ours) == first:
            first = work(ours)
            charted.append((theirs["name"], ours["wall"], theirs["wall"]))
    columns = ["peer", "as fast", "work", "ours", "theirs", "peak memory, MiB", "MB"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    if rows:
        text += table(columns, rows) + [""]
    text += [f"- {missing(name.removeprefix(prefix), results[name]['failed'])}" for name in names if name not in entries]
    if charted:
        picture = f"benchmarks/{prefix.rstrip('-')}.svg"
        sides = []
        for peer, ours, theirs in charted:
            sides += [(f"sawmill, beside {peer}", ours, True), (peer, theirs, False)]
        drawn[picture] = bars(f"{title}: seconds", sides)
        text += [f"![{title}]({picture})"]
    return text + [""]


def tables(entry, drawn):
    text = ["## Four kinds of tables", ""]
    if "failed" in entry:
        return text + [missing("tables", entry["failed"]), ""]
    text += ["Seconds of loads over 1 to 8 connections into logged and unlogged tables, with and without a primary key.", ""]
    kinds = {}
    for case in entry["cases"]:
        # Earlier results name these parameters by earlier options.
        of = {"table_kind": case["parameters"].get("table"), "keyed": case["parameters"].get("pk"), **case["parameters"]}
        name = f"{of['table_kind']}, {'primary key' if of['keyed'] == 'yes' else 'no key'}"
        kinds.setdefault(name, []).append((int(case["parameters"]["connections"]), case["sides"][0]["wall"]))
    degrees = sorted({degree for points in kinds.values() for degree, _ in points})
    rows = [[name, *(f"{wall['median']:.3f}" for _, wall in sorted(points))] for name, points in kinds.items()]
    drawn["benchmarks/tables.svg"] = lines("Seconds over connections", list(kinds.items()))
    text += table(["table", *(str(degree) for degree in degrees)], rows)
    return text + ["", "![Seconds over connections](benchmarks/tables.svg)", ""]


def datasets(results):
    """What a core generates of each dataset."""
    rows = []
    for name, entry in results.items():
        if name.startswith("own-dataset-") and "failed" not in entry:
            one = entry["cases"][0]["sides"][0]
            speed = one["work"]["bytes"] / one["cpu"]["median"] / 1e6
            each = nanoseconds(one["cpu"]["median"] / one["work"]["rows"] * 1e9)
            rows.append((speed, [name.removeprefix("own-dataset-").replace("-", " "), f"{speed:,.0f} MB/s", each]))
    text = ["## Datasets", "", "What one core generates, uncompressed, to `/dev/null`.", ""]
    head = ["dataset", "a core", "a row"]
    return text + table(head, [row for _, row in sorted(rows)]) + [""] if rows else []


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


def hot_paths(results):
    """The hot paths with a peer, in the form of `compared`."""
    for ratio, what, ours, peer, theirs in pairs(results.get("micro")):
        yield ratio, what, peer, f"{1 / ratio:.2f} x", *(nanoseconds(each["nanoseconds"]) for each in (ours, theirs))


def other_hot_paths(results):
    entry = results.get("micro")
    if not entry:
        return []
    text = ["## Hot paths", ""]
    if "failed" in entry:
        return text + [missing("micro", entry["failed"]), ""]
    text += ["By criterion, in one process (`cargo bench`), without the weak ones above.", ""]
    rows = [found[1:] for found in sorted(hot_paths(results), key=lambda found: -found[0]) if found[0] <= WEAK]
    return text + table(PATHS, rows) + [""]


def work(side):
    rows = side["work"].get("rows")
    return f"{rows:,} rows" if rows else side["work"].get("checksum", "")


def peaks(*sides):
    return " / ".join(f"{side['peak_memory']['median'] / 2**20:.0f}" for side in sides if side.get("peak_memory"))


def written(*sides):
    """The megabytes that each side produced, once if they are equal; decoders produce none."""
    made = [size(side) for side in sides]
    made = [f"{count / 1e6:,.1f}" for count in made] if all(made) else []
    return " / ".join(sorted(set(made), key=made.index))


def comparison(found):
    """How much faster ours is: the inverse of ours / theirs."""
    interval = found.get("interval")
    bounds = f" ({1 / interval['high']:.2f}-{1 / interval['low']:.2f})" if interval and interval["low"] > 0 else ""
    # The interval already says faster.
    verdict = "" if found["verdict"] == "faster" else f", {found['verdict'].replace('_', ' ')}"
    return f"{1 / found['ratio']:.2f} x{bounds}{verdict}"
