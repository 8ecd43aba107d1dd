"""What was measured, as one file: docs/benchmarks/results.json. The pages are drawn from it alone.

Each entry is the result of one run, with when and where it was made: of `sawmill bench` what its JSON says
without the samples over time, of criterion the medians, of benchmarks that take turns the medians and ratios.
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
    """What a file of `sawmill bench --json` says, without what nothing is drawn from."""
    cases = []
    for case in file["cases"]:
        sides = [side(each) for each in case["sides"]]
        cases.append({"parameters": case["parameters"], "sides": sides, "comparisons": case["comparisons"]})
    return {
        "kind": "sawmill bench",
        "started": file["started"],
        "command": shorten(file["command"], root),
        # What it calls changed can be the pages and results alone, which are written while benchmarks run.
        "commit": {**file["commit"], "changed": bool(changed_files(root))} if file.get("commit") else None,
        "machine": machine(file["machine"]),
        "disks": sorted({f"{disk['kind']} on {disk['device']}" for disk in file["filesystems"]}),
        "versions": file["versions"],
        "cases": cases,
        "load": os.getloadavg()[0],
    }


def side(found):
    kept = {name: found.get(name) for name in ("name", "wall", "cpu", "peak_memory")}
    # With a command a side was a process of its own.
    kept["whole_process"] = bool(found.get("command"))
    run = found["runs"][0]
    kept["work"] = {name: run[name] for name in ("rows", "bytes", "stored", "checksum") if run.get(name) is not None}
    phases = found.get("phases") or []
    kept["spans"] = sum(calls(span) for phase in phases for thread in phase["threads"] for span in thread["spans"])
    kept["spans_cpu"] = sum(phase["cpu"] for phase in phases if phase["depth"] == 0)
    if found.get("folded_stacks"):
        kept["samples"] = samples(found["folded_stacks"])
    return kept


def changed_files(root):
    """Files of the code that differ from the commit; results and what is drawn from them are no code."""
    command = ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!README.md"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return [line[3:] for line in done.stdout.splitlines()] if done.returncode == 0 else []


def size(side):
    """The bytes that a side made: of its table as the server says, or of its files."""
    return side["work"].get("stored") or side["work"].get("bytes")


def unfair(name, entry, newest):
    """Why a comparison is not published; none where it is fair. All stand in one table: of one machine, one commit."""
    for case in entry["cases"]:
        if any(not side.get("whole_process") for side in case["sides"]):
            return "to be measured anew: not both sides were timed from the start of their process to its end"
        kind = "bytes" if name.startswith("gen-") else "stored"
        if not name.startswith("footer-") and any(not side["work"].get(kind) for side in case["sides"]):
            return "to be measured anew: what one side made was not counted in bytes"
    if not entry.get("commit") or entry["commit"]["changed"]:
        return "to be measured anew: the code was changed since its commit"
    if (entry["commit"]["hash"], entry["machine"]) != (newest["commit"]["hash"], newest["machine"]):
        return "to be measured anew: of another commit or machine than the newest comparison"
    return None


def is_comparison(entry):
    return entry.get("kind") == "sawmill bench" and "failed" not in entry and len(entry["cases"][0]["sides"]) > 1


def published(results):
    """The results without comparisons that are not fair; these have the reason in their place."""
    compared = [entry for entry in results.values() if is_comparison(entry) and entry.get("commit")]
    newest = max(compared, key=lambda entry: entry["started"], default=None)
    kept = {}
    for name, entry in results.items():
        reason = unfair(name, entry, newest or entry) if is_comparison(entry) else None
        kept[name] = failed(entry["kind"], reason) if reason else entry
    return kept


def calls(span):
    return span["calls"] + sum(calls(child) for child in span.get("children", []))


def samples(folded):
    """Samples of CPU time by the innermost module of ours."""
    counts = {}
    for line in folded.splitlines():
        stack, count = line.rsplit(" ", 1)
        ours = [frame for frame in stack.split(";") if frame.startswith("generator::")]
        inner = stack.split(";")[-1]
        module = ours[-1].split("::")[1] if ours else "other"
        if inner.startswith("xxhash_rust"):
            module = "content_sum"
        counts[module] = counts.get(module, 0) + int(count)
    return counts


def of_criterion(folder, since, root):
    """The medians of all benchmarks that criterion has run since then, in seconds since 1970."""
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
    """The tables of benchmarks whose ways take turns."""
    tables = [json.loads(line) for line in path.read_text().splitlines()]
    return {"kind": "turns", "tables": tables, **here(root)}


def of_output(text, root):
    """What a command printed, as it stands."""
    return {"kind": "output", "text": text, **here(root)}


def here(root):
    """Where a benchmark ran that does not say so itself."""

    def said(*command):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = said("git", "rev-parse", "HEAD")
    changed = bool(changed_files(root))
    return {
        "started": said("date", "-u", "+%Y-%m-%dT%H:%M:%SZ"),
        "commit": {"hash": commit, "changed": changed} if commit else None,
        "load": os.getloadavg()[0],
        "machine": f"{processor()}, {os.cpu_count()} processors, {platform.platform()}, {said('rustc', '--version')}",
    }


def processor():
    """What the system calls the processor."""
    found = re.search(r"^model name\s*:\s*(.*)$", cpuinfo(), re.MULTILINE)
    return found[1] if found else platform.processor()


def has_avx512():
    """Whether the processor has what the fastest decoder of footers asks for."""
    return "avx512_vbmi2" in cpuinfo()


def cpuinfo():
    try:
        return pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def machine(told):
    memory = f"{told['memory'] / 2**30:.0f} GiB" if told.get("memory") else ""
    parts = [told["cpu"], f"{told['processors']} processors", memory, told.get("virtualisation") or "", told["system"]]
    parts += [told["kernel"], told["rustc"], told["build"]]
    return ", ".join(part for part in parts if part)


def shorten(command, root):
    """The command without the folders of the machine it ran on."""
    program, _, arguments = command.partition(" ")
    return f"{program.rsplit('/', 1)[-1]} {arguments}".replace(f"{root}/", "")
