"""All results in one file, docs/benchmarks/results.json, from which alone the pages are drawn.

Each entry is the result of one run, with its time and place: for `sawmill bench` its JSON without the samples
over time, for criterion the medians, for interleaved benchmarks the medians and ratios.
"""

import json
import os
import pathlib
import platform
import re
import subprocess


def load(path):
    return json.loads(path.read_text()) if path.exists() else {}


def save(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".partial")
    whole.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    whole.replace(path)


def failed(kind, reason):
    return {"kind": kind, "failed": reason}


def of_sawmill_bench(file, root):
    """The contents of a file of `sawmill bench --json` that the pages use."""
    cases = []
    for case in file["cases"]:
        sides = [side(each) for each in case["sides"]]
        cases.append({"parameters": case["parameters"], "sides": sides, "comparisons": case["comparisons"]})
    return {
        "kind": "sawmill bench",
        "started": file["started"],
        "command": shorten(file["command"], root),
        # It also counts pages and results as changed, which are written while benchmarks run.
        "commit": {**file["commit"], "changed": bool(changed_files(root))} if file.get("commit") else None,
        "machine": machine(file["machine"]),
        "disks": sorted({f"{disk['kind']} on {disk['device']}" for disk in file["filesystems"]}),
        "versions": file["versions"],
        "cases": cases,
        "load": os.getloadavg()[0],
    }


def side(found):
    kept = {name: found.get(name) for name in ("name", "wall", "cpu", "peak_memory")}
    # A side with a command ran in its own process.
    kept["whole_process"] = bool(found.get("command"))
    run = found["runs"][0]
    kept["work"] = {name: run[name] for name in ("rows", "bytes", "stored", "checksum") if run.get(name) is not None}
    phases = found.get("phases") or []
    kept["spans"] = sum(calls(span) for phase in phases for thread in phase["threads"] for span in thread["spans"])
    kept["spans_cpu"] = sum(phase["cpu"] for phase in phases if phase["depth"] == 0)
    return kept


def changed_files(root):
    """Code files that differ from the commit; results and pages are not code."""
    command = ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!README.md"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return [line[3:] for line in done.stdout.splitlines()] if done.returncode == 0 else []


def size(side):
    """The bytes that a side produced: its table's size according to the server, or its files' size."""
    return side["work"].get("stored") or side["work"].get("bytes")


def unfair(name, entry, newest):
    """Why a comparison is not published; None if it is fair. All must be of one machine and one commit."""
    for case in entry["cases"]:
        if any(not side.get("whole_process") for side in case["sides"]):
            return "must be measured again: at least one side was not timed from the start of its process to its end"
        kind = "bytes" if name.startswith("gen-") else "stored"
        if not name.startswith("footer-") and any(not side["work"].get(kind) for side in case["sides"]):
            return "must be measured again: the bytes that one side produced were not counted"
    if not entry.get("commit") or entry["commit"]["changed"]:
        return "must be measured again: the code had changed since its commit"
    if (entry["commit"]["hash"], entry["machine"]) != (newest["commit"]["hash"], newest["machine"]):
        return "must be measured again: its commit or machine differs from the newest comparison's"
    return None


def is_comparison(entry):
    return entry.get("kind") == "sawmill bench" and "failed" not in entry and len(entry["cases"][0]["sides"]) > 1


def published(results):
    """The results, with unfair comparisons replaced by the reason."""
    compared = [entry for entry in results.values() if is_comparison(entry) and entry.get("commit")]
    newest = max(compared, key=lambda entry: entry["started"], default=None)
    kept = {}
    for name, entry in results.items():
        reason = unfair(name, entry, newest or entry) if is_comparison(entry) else None
        kept[name] = failed(entry["kind"], reason) if reason else entry
    return kept


def calls(span):
    return span["calls"] + sum(calls(child) for child in span.get("children", []))


def of_criterion(folder, since, root):
    """The medians of all benchmarks that criterion has run since a time, in seconds since 1970."""
    benchmarks = []
    for path in sorted(folder.glob("**/new/benchmark.json")):
        if path.stat().st_mtime < since:
            continue
        about = json.loads(path.read_text())
        median = json.loads((path.parent / "estimates.json").read_text())["median"]
        interval = median["confidence_interval"]
        throughput = about.get("throughput")
        benchmarks.append(
            {
                "group": about["group_id"],
                "function": about.get("function_id") or about.get("value_str") or "",
                "throughput": next(iter(throughput.items())) if throughput else None,
                "nanoseconds": median["point_estimate"],
                "interval": [interval["lower_bound"], interval["upper_bound"]],
            }
        )
    return {"kind": "criterion", "benchmarks": benchmarks, **here(root)}


def of_turns(path, root):
    """The tables of interleaved benchmarks."""
    tables = [json.loads(line) for line in path.read_text().splitlines()]
    return {"kind": "turns", "tables": tables, **here(root)}


def here(root):
    """The circumstances of a benchmark that does not report them itself."""

    def output(*command):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = output("git", "rev-parse", "HEAD")
    changed = bool(changed_files(root))
    return {
        "started": output("date", "-u", "+%Y-%m-%dT%H:%M:%SZ"),
        "commit": {"hash": commit, "changed": changed} if commit else None,
        "load": os.getloadavg()[0],
        "machine": f"{processor()}, {os.cpu_count()} processors, {platform.platform()}, {output('rustc', '--version')}",
    }


def processor():
    """The system's name for the processor."""
    found = re.search(r"^model name\s*:\s*(.*)$", cpuinfo(), re.MULTILINE)
    return found[1] if found else platform.processor()


def cpuinfo():
    try:
        return pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def machine(reported):
    memory = f"{reported['memory'] / 2**30:.0f} GiB" if reported.get("memory") else ""
    parts = [reported["cpu"], f"{reported['processors']} processors", memory, reported.get("virtualisation") or "", reported["system"]]
    parts += [reported["kernel"], reported["rustc"], reported["build"]]
    return ", ".join(part for part in parts if part)


def shorten(command, root):
    """The command without the folders of its machine."""
    program, _, arguments = command.partition(" ")
    return f"{program.rsplit('/', 1)[-1]} {arguments}".replace(f"{root}/", "")
