#!/usr/bin/env python3
"""How long readers in other languages take to decode the footers of a directory's files, in memory.

    pip install pyarrow fastparquet; npm install hyparquet    (in the directory that NODE_MODULES names)
    mvn dependency:copy -Dartifact=dev.hardwood:hardwood-core:1.0.0.Final -DoutputDirectory=DIRECTORY
    python scripts/peers/footer/footer_other_languages.py /tmp/foreign [DIRECTORY]    (of node_modules and the .jar)

Prints microseconds of CPU time: the lower quartile of repeated decoding. For JavaScript it is that of the whole
process, its compiler and collector included; for Java, which needs a JDK of at least 21, that of the decoding
thread once its code is compiled. Readers that are not installed are left out.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
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

HARDWOOD = """
import dev.hardwood.internal.thrift.*;
import java.lang.management.ManagementFactory;
import java.nio.*;
import java.nio.file.*;
import java.util.*;
class Footers {
  static long kept;
  static void decode(ByteBuffer footer) throws Exception {
    kept += FileMetaDataReader.read(new ThriftCompactReader(footer)).numRows();
  }
  public static void main(String[] paths) throws Exception {
    var threads = ManagementFactory.getThreadMXBean();
    for (String path : paths) {
      byte[] file = Files.readAllBytes(Path.of(path));
      int len = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).getInt(file.length - 8);
      ByteBuffer footer = ByteBuffer.wrap(Arrays.copyOfRange(file, file.length - 8 - len, file.length - 8));
      long warm = System.nanoTime();
      do decode(footer); while (System.nanoTime() - warm < 2_000_000_000L);
      var found = new ArrayList<Double>();
      long began = System.nanoTime();
      for (int repeats = 1; found.size() < 5 || (System.nanoTime() - began < 1_500_000_000L && found.size() < 500); ) {
        long before = threads.getCurrentThreadCpuTime();
        for (int i = 0; i < repeats; i++) decode(footer);
        long took = threads.getCurrentThreadCpuTime() - before;
        if (took < 1_000_000) repeats *= 2; else found.add(took / 1e3 / repeats);
      }
      Collections.sort(found);
      System.out.println(path + "\\t" + found.get(found.size() / 4));
    }
  }
}
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


def hardwood(paths):
    directory = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    jars = sorted(directory.glob("hardwood-core-*.jar"))
    if not jars:
        raise OSError(f"no hardwood-core-*.jar in {directory}")
    java = os.path.join(os.environ["JAVA_HOME"], "bin/java") if "JAVA_HOME" in os.environ else "java"
    with tempfile.TemporaryDirectory() as source:
        program = pathlib.Path(source, "Footers.java")
        program.write_text(HARDWOOD)
        command = [java, "-cp", str(jars[-1]), str(program), *map(str, paths)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return {pathlib.Path(path): float(time) for path, time in (line.split("\t") for line in ran.stdout.splitlines())}


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).resolve().glob("*.parquet"))
    columns = {}
    for reader in [pyarrow, fastparquet, hyparquet, hardwood]:
        try:
            columns[reader.__name__] = reader(paths)
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            print(f"{reader.__name__}: left out, {error} {getattr(error, 'stderr', '')}", file=sys.stderr)
    print(f"| footer | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for path in paths:
        print(f"| {path.stem} | {' | '.join(f'{times[path]:.1f} µs' for times in columns.values())} |")


if __name__ == "__main__":
    main()
