"""Ten things that people do with the module, each checked by another library: wheel.py FOLDER SERVER."""

import doctest
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import sawmill

folder, server = sys.argv[1:3]
path = os.path.join(folder, "contacts.parquet")


def rows_of(table: str) -> int:
    """The rows of a table that holds what the file holds."""
    return sawmill.verify(path, server, table)["target"]["rows"]


# 1. Generated rows are an Arrow stream, the same for the same seed.
stream = sawmill.generate("contacts", rows=10_000, seed=7)
table = pa.table(stream)
assert table.num_rows == 10_000 and table == pa.table(stream) == pa.table(sawmill.generate("contacts", rows=10_000, seed=7))
assert table != pa.table(sawmill.generate("contacts", rows=10_000, seed=8))

# 2. DuckDB reads the stream where it is.
reader = pa.RecordBatchReader.from_stream(stream)
assert duckdb.sql("select count(*) from reader").fetchall() == [(10_000,)]

# 3. The command makes a file with the same rows.
sawmill.run("gen", "contacts", rows=10_000, seed=7, out=path)
assert pq.read_table(path).num_rows == 10_000

# 4. A footer is a table of column chunks, equal to pyarrow's.
footer, theirs = sawmill.footer(path), pq.read_metadata(path)
chunks = pa.table(footer).to_pylist()
assert (footer.rows, footer.row_groups) == (theirs.num_rows, theirs.num_row_groups)
for chunk in chunks:
    group = theirs.row_group(chunk["row_group"])
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    same = columns[chunk["column"]]
    assert (chunk["values"], chunk["compressed_bytes"]) == (same.num_values, same.total_compressed_size), chunk
assert "PLAIN" in chunks[0]["encodings"] and "(" not in chunks[0]["encodings"], chunks[0]
assert len(pa.table(sawmill.footer(path, columns=["name"]))) == theirs.num_row_groups

# 5. A table of Arrow is loaded exactly once, and verified.
report = sawmill.load(table, server, "streamed", verify=True)
assert report["rows"] == 10_000 and report["verified"] is not None, report
assert sawmill.load(table, server, "streamed")["standing"] == "complete"
assert rows_of("streamed") == 10_000

# 6. A file is loaded by its path; both have the same content sum.
report = sawmill.load(path, server, "from_file", verify=True)
assert rows_of("from_file") == 10_000

# 7. A difference is an exception with its parts.
try:
    sawmill.load(table.slice(0, 10), server, "streamed")
    raise AssertionError("the table exists")
except sawmill.Error as error:
    assert (error.code, error.exit_code) == ("failure", 1) and "exists" in error.what and error.advice, vars(error)
sawmill.load(table.slice(0, 10), server, "streamed", mode="append")
try:
    rows_of("streamed")
    raise AssertionError("the table has ten rows more")
except sawmill.Error as error:
    assert (error.code, error.exit_code) == ("mismatch", 4), vars(error)

# 8. More rows like a sample.
spec = sawmill.like(path)
assert pa.table(sawmill.generate(spec, rows=500)).num_rows == 500

# 9. COPY for other drivers.
copy = sawmill.pgcopy(table)
assert copy.startswith(b"PGCOPY\n\xff\r\n\0") and copy.endswith(b"\xff\xff")

# A condition, and a path, may begin with a sign.
pq.write_table(pa.table({"n": [-2, 0, 1]}), "-n.parquet")
assert sawmill.load("-n.parquet", server, "signed", where="-1 < n")["rows"] == 2

# A signal to this process alone ends the command, and so does one to both.
# A shell starts its background jobs with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
for send in (lambda: os.kill(os.getpid(), signal.SIGINT), lambda: os.killpg(os.getpgrp(), signal.SIGINT)):
    threading.Timer(1, send).start()
    try:
        sawmill.run("gen", "contacts", rows="1B", out="endless.parquet")
        raise AssertionError("no interrupt")
    except KeyboardInterrupt:
        assert not [name for name in os.listdir() if name.startswith("endless")], os.listdir()

# 10. Wrong input is an error that says what to do.
for wrong in (lambda: sawmill.footer(__file__), lambda: sawmill.generate("nothing"), lambda: sawmill.load([1], server, "t")):
    try:
        wrong()
        raise AssertionError("no error")
    except (sawmill.Error, TypeError) as error:
        assert str(error)

# A column is not a table, a lazy frame has no rows yet, and advice names no option of the command.
for wrong, says in ((pa.chunked_array([[1]]), "no columns"), (object(), "__arrow_c_stream__")):
    try:
        sawmill.load(wrong, server, "t")
        raise AssertionError("no error")
    except TypeError as error:
        assert says in str(error), error
try:
    sawmill.load(pa.table({"t": pa.array([1], pa.time64("ns"))}), server, "t")
    raise AssertionError("nanoseconds would be lost")
except sawmill.Error as error:
    assert "nanoseconds would be lost" in error.what and "--" not in str(error), error
with open("paths.toml", "w") as file:
    file.write(spec)
assert pa.table(sawmill.generate(pathlib.Path("paths.toml"), rows=5)).num_rows == 5

# The fields of an error are those of the command's JSON, also if its command line is wrong.
try:
    sawmill.run("footer", path, no_such_option=True)
    raise AssertionError("no error")
except sawmill.Error as error:
    assert (error.code, error.exit_code) == ("usage", 2) and "--no-such-option" in error.what, vars(error)
assert issubclass(sawmill.Error, Exception) and "[[fields]]" in sawmill.like(table.slice(0, 100))


def tried(name: str, documented: object) -> str:
    """Runs the examples of a docstring, as if its server was ours, and returns what failed."""
    text = (documented.__doc__ or "").replace("postgres://me@localhost/db", server)
    # Rust marks examples so.
    text = text.replace("```text\n", "").replace("```", "")
    names = {"sawmill": sawmill, "pyarrow": pa}
    examples = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert examples.examples, f"{name} has no example"
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=said.append)
    return "".join(said)


# Every function has an example that runs.
os.chdir(folder)
sawmill.run("gen", "contacts", rows=1000, out="trips.parquet")
for name in ("load", "verify", "like", "footer", "generate", "pgcopy", "run"):
    assert not (failed := tried(name, getattr(sawmill, name))), failed
assert not (failed := tried("sawmill", sawmill)), failed
# A load test rightly complains of a machine that is busy with other tests.
failed = tried("drive", sawmill.drive)
assert not failed or "the result is invalid" in failed, failed

# The command, as `uvx` starts it.
bin = os.path.join(os.path.dirname(os.path.dirname(sawmill.__file__)), "bin", "sawmill-parquet")
out = subprocess.run([sys.executable, bin, "demo", "--rows", "1000", "--json"], capture_output=True, text=True, check=True)
assert json.loads(out.stdout)
