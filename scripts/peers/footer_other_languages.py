#!/usr/bin/env python3
"""How long readers in other languages take to decode the footers of a directory's files, in memory.

    pip install pyarrow fastparquet; npm install hyparquet    (in the directory that NODE_MODULES names)
    python scripts/peers/footer_other_languages.py /tmp/foreign [NODE_MODULES]

Prints microseconds of CPU time: the lower quartile of repeated decoding. For JavaScript it is that of the whole
process, its compiler and collector included. Readers that are not installed are left out.
"""

import json
import pathlib
import subprocess
import sys
import time

HYPARQUET = """
import { readFileSync } from 'node:fs'
import { parquetMetadata } from 'hyparquet'
const times = {}
const cpu = () => { const { user, system } = process.cpuUsage(); return user + system }
for (const path of process.argv.slice(1)) {
  const file = readFileSync(path)
  const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength)
  const found = []
  const began = performance.now()
  for (let repeats = 1; found.length < 5 || (performance.now() - began < 1500 && found.length < 500); ) {
    const before = cpu()
    for (let i = 0; i < repeats; i++) parquetMetadata(bytes)
    const took = cpu() - before
    // Turns of some milliseconds: the clock counts whole microseconds.
    if (took < 3000) repeats *= 2
    else found.push(took / repeats)
  }
  found.sort((a, b) => a - b)
  times[path] = found[found.length >> 2]
}
console.log(JSON.stringify(times))
"""


def quartile(run):
    times, began = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - began < 1.5 and len(times) < 500):
        before = time.thread_time()
        run()
        times.append(time.thread_time() - before)
    return sorted(times)[len(times) // 4] * 1e6


def footer(path):
    """The smallest file with this footer."""
    file = path.read_bytes()
    length = int.from_bytes(file[-8:-4], "little")
    return b"PAR1" + file[-8 - length :]


def pyarrow(paths):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    buffers = {path: pa.py_buffer(footer(path)) for path in paths}
    return {path: quartile(lambda: pq.read_metadata(pa.BufferReader(buffers[path]))) for path in paths}


def fastparquet(paths):
    import io

    from fastparquet.cencoding import from_buffer

    return {path: quartile(lambda: from_buffer(footers, "FileMetaData")) for path in paths for footers in [footer(path)[4:-8]]}


def hyparquet(paths):
    directory = sys.argv[2] if len(sys.argv) > 2 else "."
    command = ["node", "--input-type=module", "-e", HYPARQUET, *map(str, paths)]
    ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    return {pathlib.Path(path): found for path, found in json.loads(ran.stdout).items()}


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).resolve().glob("*.parquet"))
    columns = {}
    for reader in [pyarrow, fastparquet, hyparquet]:
        try:
            columns[reader.__name__] = reader(paths)
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            print(f"{reader.__name__}: left out, {error} {getattr(error, 'stderr', '')}", file=sys.stderr)
    print(f"| footer | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for path in paths:
        print(f"| {path.stem} | {' | '.join(f'{times[path]:.1f} µs' for times in columns.values())} |")


if __name__ == "__main__":
    main()
