"""Writes docs/benchmarks.md and its pictures from the results of `sawmill bench` and of criterion."""

import json
import os
import pathlib

from benchmark_picture import bars, lines

AREAS = [
    (
        "gen-",
        "Generation",
        "Whole runs, files written and their rows counted. Ours is timed inside its process, the peer from "
        "start to end.",
    ),
    (
        "footer-",
        "Footers",
        "All footers of a folder of wide files are read and decoded, one file after the other; the peer is "
        "timed from start to end, with the start of Python.",
    ),
    (
        "load-",
        "Loading into PostgreSQL",
        "The same rows into an empty table of the same columns; what a peer left there is counted, and its "
        "content compared, or there is no figure. A peer is timed from start to end, with the start of its "
        "process (of the floor, one psql a connection); ours inside its process.",
    ),
]


def write_page(folder, results, criterion, peers, quick):
    files = {path.stem: json.loads(path.read_text()) for path in sorted(results.glob("*.json"))}
    failed = {path.stem: path.read_text().strip() for path in sorted(results.glob("*.failed"))}
    order = [result for _, result in peers]
    pictures = folder / "benchmarks"
    pictures.mkdir(parents=True, exist_ok=True)
    for picture in pictures.glob("*.svg"):
        picture.unlink()
    text = ["# Benchmarks", "", "Written by `scripts/benchmarks` from the results; do not edit.", ""]
    if quick:
        text += ["**A quick run with small sizes: it shows that everything works, its figures say nothing.**", ""]
    text += machine(files)
    for prefix, title, note in AREAS:
        here = [name for name in order if name.startswith(prefix) and (name in files or name in failed)]
        if here:
            text += area(prefix, title, note, here, files, failed, pictures)
    if "load-tables" in files or "load-tables" in failed:
        text += tables(files.get("load-tables"), failed.get("load-tables"), pictures)
    text += micro(criterion, failed.get("micro"))
    (folder / "benchmarks.md").write_text("\n".join(text).rstrip() + "\n")


def machine(files):
    if not files:
        return ["There are no results.", ""]
    newest = max(files.values(), key=lambda file: file["started"])
    here = newest["machine"]
    memory = f"{here['memory'] / 2**30:.0f} GiB" if here.get("memory") else ""
    parts = [here["cpu"], f"{here['processors']} processors", memory, here.get("virtualisation", ""), here["system"]]
    parts += [here["kernel"], here["rustc"], here["build"]]
    disks = {f"{disk['kind']} on {disk['device']}" for file in files.values() for disk in file["filesystems"]}
    versions = {}
    for file in files.values():
        versions.update(file["versions"])
    commit = newest.get("commit")
    lines = ["| | |", "|---|---|"]
    lines.append(f"| machine | {', '.join(part for part in parts if part)} |")
    lines.append(f"| files | {', '.join(sorted(disks))} |")
    lines.append(f"| versions | {', '.join(f'{name} {version}' for name, version in sorted(versions.items()))} |")
    if commit:
        changed = " with changes" if commit["changed"] else ""
        lines.append(f"| commit | {commit['hash'][:12]}{changed} |")
    lines.append(f"| last run | {newest['started']} |")
    busy = os.getloadavg()
    lines.append(f"| load of the machine | {busy[2]:.1f} over the last 15 minutes, when this page was written |")
    lines += [
        "",
        "Medians. An interval is the 95 % interval of the ratio of pairs of runs that were made in turn; with "
        "fewer than five pairs it is wide. A verdict is given where the whole interval is on one side of 1.",
        "",
    ]
    return lines


def area(prefix, title, note, names, files, failed, pictures):
    text = [f"## {title}", "", note, ""]
    head = "| peer | work | ours | theirs | ours, CPU | theirs, CPU | ours, memory | theirs, memory | ours is |"
    text += [head, "|---|---|---|---|---|---|---|---|---|"]
    charted, first = [], None
    for name in names:
        if name in failed:
            text.append(f"| {name.removeprefix(prefix)} | {failed[name]} | | | | | | | |")
            continue
        case = files[name]["cases"][0]
        ours, theirs = case["sides"][0], case["sides"][1]
        cells = [theirs["name"], work(ours), time(ours["wall"]), time(theirs["wall"])]
        cells += [time(ours["cpu"]), time(theirs["cpu"]), memory(ours), memory(theirs)]
        cells.append(comparison(case["comparisons"][0]))
        text.append(f"| {' | '.join(cells)} |")
        # Bars of one picture stand for the same work.
        if not charted or work(ours) == first:
            first = work(ours)
            charted.append((theirs["name"], ours["wall"], theirs["wall"]))
    if charted:
        picture = f"{prefix.rstrip('-')}.svg"
        rows = []
        for peer, ours, theirs in charted:
            rows += [(f"sawmill, beside {peer}", ours, True), (peer, theirs, False)]
        (pictures / picture).write_text(bars(f"{title}: seconds", rows))
        text += ["", f"![{title}](benchmarks/{picture})"]
    commands = {shorten(files[name]["command"]) for name in names if name in files}
    if commands:
        text += ["", "```sh", *sorted(commands), "```"]
    return text + [""]


def tables(file, failure, pictures):
    text = ["## Four kinds of tables", ""]
    if failure or not file:
        return text + [f"Not measured: {failure}", ""]
    text += ["Loads over 1 to 8 connections into logged and unlogged tables, with and without a primary key.", ""]
    kinds, series = {}, []
    for case in file["cases"]:
        kind = (case["parameters"]["table"], case["parameters"]["pk"])
        kinds.setdefault(kind, []).append((int(case["parameters"]["degree"]), case["sides"][0]["wall"]))
    for (table, key), points in kinds.items():
        title = f"{table}, {'primary key' if key == 'yes' else 'no key'}"
        text += [f"**{title}**", "", "| degree | seconds | speed-up |", "|---:|---:|---:|"]
        first = points[0][1]["median"]
        text += [f"| {n} | {wall['median']:.3f} | {first / wall['median']:.2f} x |" for n, wall in points]
        text.append("")
        series.append((title, points))
    (pictures / "tables.svg").write_text(lines("Seconds over degree", series))
    text += ["![Seconds over degree](benchmarks/tables.svg)", ""]
    return text + ["```sh", shorten(file["command"]), "```", ""]


def micro(criterion, failure):
    groups = {}
    for path in sorted(criterion.glob("**/new/benchmark.json")):
        about = json.loads(path.read_text())
        estimates = json.loads((path.parent / "estimates.json").read_text())
        function = about.get("function_id") or about.get("value_str") or ""
        groups.setdefault(about["group_id"], []).append((function, about.get("throughput"), estimates["median"]))
    wanted = {name: rows for name, rows in groups.items() if name.split("/")[0] in
              ("copy", "contacts", "draw", "shred", "pages", "span")}
    if failure:
        return ["## Hot paths", "", f"Not measured: {failure}", ""]
    if not wanted:
        return []
    text = ["## Hot paths", "", "By criterion, in one process (`cargo bench`); medians with their 95 % intervals.", ""]
    text += ["| path | what | time | rate |", "|---|---|---|---|"]
    for name, rows in wanted.items():
        for function, throughput, median in rows:
            low, high = (median["confidence_interval"][bound] for bound in ("lower_bound", "upper_bound"))
            middle = median["point_estimate"]
            text.append(
                f"| {name} | {function} | {nanoseconds(middle)} ({nanoseconds(low)} to {nanoseconds(high)}) "
                f"| {rate(throughput, middle)} |"
            )
    return text + [""]


def work(side):
    run = side["runs"][0]
    rows = f"{run['rows']:,} rows" if run.get("rows") else run.get("checksum") or ""
    return rows


def comparison(found):
    """How much faster ours is: the inverse of ours / theirs."""
    interval = found.get("interval")
    bounds = f" ({1 / interval['high']:.2f} to {1 / interval['low']:.2f})" if interval and interval["low"] > 0 else ""
    return f"{1 / found['ratio']:.2f} x as fast{bounds}: {found['verdict'].replace('_', ' ')}"


def time(statistics):
    return nanoseconds(statistics["median"] * 1e9) if statistics else ""


def nanoseconds(value):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ns"


def memory(side):
    peak = side.get("peak_memory")
    return f"{peak['median'] / 2**20:.0f} MiB" if peak else ""


def rate(throughput, nanos):
    if not throughput:
        return ""
    kind, amount = next(iter(throughput.items()))
    per_second = amount / nanos * 1e9
    return f"{per_second / 1e9:.2f} GB/s" if kind == "Bytes" else f"{per_second / 1e6:.3g} M rows/s"


def shorten(command):
    """The command without the folders of the machine it ran on."""
    root = str(pathlib.Path(__file__).resolve().parent.parent)
    program, _, arguments = command.partition(" ")
    return f"{pathlib.Path(program).name} {arguments}".replace(f"{root}/", "")
