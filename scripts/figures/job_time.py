#!/usr/bin/env python3
"""How long a job of many processes takes that makes a dataset, and what bounds it.

    scripts/figures/job_time.py --check          measures one process here, and compares 1, 2, 4 and 8 with the simulation
    scripts/figures/job_time.py --rate 969e6 --machines 100 --cores 16 --network 25e9

The simulation has machines whose processes share cores and network. A process makes the files of its part one after the
other; a file is made at the rate of one core and sent at the same time, so that the slower of both decides. With --failures
a process is lost now and then, with the file that it was at, and starts again. A store takes so many requests a second.
Rates are those of one process, measured by --check or given. SAWMILL names the command to measure.
"""

import argparse
import heapq
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAWMILL = os.environ.get("SAWMILL", str(ROOT / "target/dist/sawmill"))
DATASET = "contacts"


class Machine:
    """Processes that share cores and network. Each has a file with seconds of one core and bytes to send left."""

    def __init__(self, job):
        self.job, self.left, self.at = job, {}, 0.0

    def speed(self):
        """How much of a file's time passes in a second, for each process."""
        busy = max(1, len(self.left))
        of_core = min(1.0, self.job.cores / busy)
        of_network = self.job.network / busy / self.job.rate
        return min(of_core, of_network)

    def advance(self, now):
        passed, self.at = (now - self.at) * self.speed(), now
        self.left = {process: left - passed for process, left in self.left.items()}

    def next_end(self):
        if not self.left:
            return None
        process = min(self.left, key=self.left.get)
        return self.at + max(0.0, self.left[process]) / self.speed(), process


class Job:
    """A dataset of so many bytes in so many files, a range of which each process makes."""

    def __init__(self, given):
        self.cores, self.network, self.rate = given.cores, given.network / 8, given.rate
        self.file, self.start = given.file, given.start
        self.files = max(1, round(given.bytes / given.file))
        self.machines, self.processes = given.machines, given.processes or given.machines * given.cores
        self.failures, self.random = given.failures, random.Random(1)

    def seconds(self):
        """The time until the last file is made."""
        machines = [Machine(self) for _ in range(self.machines)]
        bound = lambda process: self.files * process // self.processes
        todo = [bound(process + 1) - bound(process) for process in range(self.processes)]
        for process in range(self.processes):
            if todo[process]:
                machines[process % self.machines].left[process] = self.start + self.of_file()
        events, end = [], 0.0
        push = lambda number: (following := machines[number].next_end()) and heapq.heappush(events, (following[0], number))
        for number in range(self.machines):
            push(number)
        while events:
            now, number = heapq.heappop(events)
            machine = machines[number]
            following = machine.next_end()
            if following is None or following[0] > now:
                continue
            machine.advance(now)
            process = following[1]
            del machine.left[process]
            lost = self.random.random() < self.failures * self.of_file() / 3600
            todo[process] -= 0 if lost else 1
            if todo[process]:
                machine.left[process] = self.of_file() + (self.start if lost else 0)
            end = now
            push(number)
        return end

    def of_file(self):
        """Seconds of one core for a file."""
        return self.file / self.rate

    def bounds(self):
        """What each resource alone would take, in seconds."""
        total = self.files * self.file
        return {
            "cores": total / (self.rate * min(self.processes, self.machines * self.cores)),
            "network": total / (self.network * self.machines),
        }


def check(given):
    """Measures one process, and compares several with the simulation."""
    files, rows = 16, 4_000_000
    with tempfile.TemporaryDirectory(dir=given.directory) as folder:
        def run(processes):
            out = pathlib.Path(folder) / str(processes)
            command = [SAWMILL, "gen", DATASET, "--rows", str(files * rows), "--files", str(files), "--threads", "1", "--json"]
            parts = [command + ["--out", str(out), "--part", f"{k + 1}/{processes}"] for k in range(processes)]
            began = time.monotonic()
            started = [subprocess.Popen(part, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for part in parts]
            said = [process.communicate()[0] for process in started]
            seconds = time.monotonic() - began
            if any(process.returncode for process in started):
                raise SystemExit(f"error: this command failed: {' '.join(parts[0])}")
            made = [json.loads(text) for text in said]
            size = sum(file["bytes"] for part in made for file in part["files"])
            subprocess.run(["rm", "-r", str(out)], check=True)
            return seconds, size

        run(2)
        alone, size = run(1)
        given.bytes, given.file, given.rate, given.machines = size, size / files, size / alone, 1
        given.cores, given.network, given.failures, given.start = os.cpu_count(), 1e12, 0, 0.02
        print(f"one process: {size / alone / 1e6:.0f} MB/s of files, {files * rows / alone / 1e6:.1f} M rows/s, {given.cores} cores")
        print(f"{'processes':>9} {'measured':>9} {'simulated':>9} {'ratio':>6}")
        for processes in (1, 2, 4, 8):
            given.processes = processes
            measured, simulated = sorted(run(processes)[0] for _ in range(3))[1], Job(given).seconds()
            print(f"{processes:>9} {measured:>8.2f}s {simulated:>8.2f}s {measured / simulated:>6.2f}")


def positive(kind, least=None):
    """A number above 0, or of at least `least`, for argparse."""
    def parsed(text):
        number = kind(text)
        if not math.isfinite(number) or (number <= 0 if least is None else number < least):
            raise argparse.ArgumentTypeError(f"{text} is not {'above 0' if least is None else f'{least} or more'}")
        return number

    parsed.__name__ = "number" if kind is float else "whole number"
    return parsed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--directory", help="where --check writes its files")
    parser.add_argument("--bytes", type=positive(float), default=1e15, help="bytes of all files")
    parser.add_argument("--file", type=positive(float), default=1e9, help="bytes of a file")
    parser.add_argument("--rate", type=positive(float), default=4e8, help="bytes of files a second that one core makes")
    parser.add_argument("--machines", type=positive(int), default=100)
    parser.add_argument("--cores", type=positive(int), default=16, help="of a machine")
    parser.add_argument("--processes", type=positive(int), help="in all; by default one for each core")
    parser.add_argument("--network", type=positive(float), default=25e9, help="bits a second of a machine")
    parser.add_argument("--start", type=positive(float, 0), default=5, help="seconds until a process makes its first row")
    parser.add_argument("--failures", type=positive(float, 0), default=0.0, help="losses of a process in an hour of its work")
    parser.add_argument("--part-bytes", type=positive(float), default=8 * 2**20, help="bytes of a request to a store")
    given = parser.parse_args()
    if given.check:
        if not shutil.which(SAWMILL):
            parser.error(f"--check runs {SAWMILL}, which is no program: build it (cargo build --profile dist), or name it in SAWMILL")
        if given.directory and not os.path.isdir(given.directory):
            parser.error(f"--directory: there is no folder {given.directory}")
        return check(given)
    job = Job(given)
    seconds = job.seconds()
    for name, alone in sorted(job.bounds().items(), key=lambda bound: -bound[1]):
        print(f"{name} alone: {alone / 60:.1f} min")
    print(f"simulated: {seconds / 60:.1f} min, {job.files * job.file / seconds / 1e9:.0f} GB/s")
    print(f"requests: {job.files * job.file / given.part_bytes / seconds:,.0f} a second")


if __name__ == "__main__":
    main()
