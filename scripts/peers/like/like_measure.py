"""Compares the twins that Sawmill and SDV make of public data sets, and prints a table, the weakest rows first.

Arguments: the sawmill command, the folder of `like_twins.py`, the file for the results, and names of data sets. A pair
of columns is as far off as the farthest of its measures in `sawmill gen fidelity`.
"""

import json
import pathlib
import resource
import shutil
import subprocess
import sys


def run(*command):
    """The output of a command, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def mean(values):
    values = list(values)
    return sum(values) / max(1, len(values))


def distances(sawmill, source, twin):
    """The mean distances of pairs of columns, of columns, and of their order."""
    found = json.loads(run(sawmill, "gen", "fidelity", source, twin, "--json")[0])
    apart = lambda measure: abs(measure["source"] - measure["generated"])
    pairs = [max(map(apart, pair["measures"])) for pair in found["pairs"] if pair["measures"]]
    return {
        "pairs": mean(pairs),
        "columns": mean(column["distance"] for column in found["columns"]),
        "order": mean(map(apart, found["order"])),
        "keys": found["kept"]["keys"],
    }


def compared(sawmill, folder, source):
    """Both twins of a data set."""
    ours, theirs = folder / "sawmill" / source.stem, folder / "sdv" / source.name
    shutil.rmtree(ours, ignore_errors=True)
    seconds = run(sawmill, "gen", "--like", source, "--out", ours, "--quiet")[1]
    sides = [distances(sawmill, source, ours), distances(sawmill, source, theirs)]
    for side, cpu in zip(sides, (seconds, float(theirs.with_suffix(".seconds").read_text()))):
        side["cpu"] = cpu
    return {"data": source.stem, "sawmill": sides[0], "sdv": sides[1]}


def weakness(row):
    """By how much a row misses the goal, at most SDV's pairs, a quarter of its columns, a tenth of its CPU time."""
    ours, theirs = row["sawmill"], row["sdv"]
    goals = {"pairs": 1, "columns": 1 / 4, "cpu": 1 / 10}
    return max(ours[name] / max(1e-9, theirs[name] * goal) for name, goal in goals.items())


def main():
    sawmill, folder, out, *only = sys.argv[1:]
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    rows = []
    for source in sorted((folder / "source").glob("*.parquet")):
        if not only or source.stem in only:
            rows.append(compared(sawmill, folder, source))
    rows.sort(key=weakness, reverse=True)
    line = "{:16}" + "{:>8}{:>8}  " * 4 + "{:>9}"
    print(line.format("data set", "pairs", "SDV", "columns", "SDV", "order", "SDV", "CPU s", "SDV", "of goal"))
    for row in rows:
        sides = [f"{row[side][name]:.3f}" for name in ("pairs", "columns", "order", "cpu") for side in ("sawmill", "sdv")]
        print(line.format(row["data"], *sides, f"{weakness(row):.2f}"))
    if not only:
        out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
