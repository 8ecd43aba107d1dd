"""Make Parquet files, read their footers, and load databases, each row exactly once.

Rows come and go as Arrow streams, which pyarrow, polars, pandas and DuckDB read and give without a copy:

>>> import pyarrow as pa
>>> pa.table(sawmill.generate("contacts", rows=1000)).num_rows
1000

Functions on files run the command ``sawmill``, with its options as keywords: ``primary_key="id"`` is
``--primary-key id``, ``verify=True`` is ``--verify``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from ._sawmill import Error, Footer, Stream, __version__, footer, generate, load_stream, pgcopy
from ._sawmill import command as _command

__all__ = [
    "Error",
    "Footer",
    "Stream",
    "__version__",
    "drive",
    "footer",
    "generate",
    "like",
    "load",
    "main",
    "pgcopy",
    "run",
    "verify",
]

#: Starts the command from this installation.
_PROGRAM = [sys.executable, "-m", "sawmill"]


def main() -> None:
    """Run the command line of this process."""
    sys.exit(_command(_PROGRAM, sys.argv[1:]))


def _words(options: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words += [word for item in value for word in (option, str(item))]
        else:
            words += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words


def run(*words: str | os.PathLike[str], **options: Any) -> Any:
    """Run a command such as ``run("footer", "a.parquet", check=True)``, and return its JSON.

    Progress and notes go to standard error. Ctrl-C stops the command as on a terminal.

    Raises:
        Error: with ``what``, ``where``, ``advice`` and ``exit_code``.
    """
    line = [*_PROGRAM, *map(os.fspath, words), *_words(options), "--json"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate()
    except KeyboardInterrupt:
        # The command has had the signal, too, and cleans up.
        process.communicate()
        raise
    if process.returncode == 0:
        sys.stderr.write(err)
        return json.loads(out) if out.strip() else None
    raise _error(err, process.returncode)


def _error(text: str, code: int) -> Error:
    lines = text.rstrip().splitlines() or [""]
    try:
        parts = json.loads(lines[-1])["error"]
    except (ValueError, KeyError, TypeError):
        parts = {"what": text.strip(), "where": "", "advice": ""}
    shown = [parts[name] for name in ("what", "where", "advice") if parts[name]]
    error = Error(" - ".join(shown))
    for name in ("what", "where", "advice"):
        setattr(error, name, parts[name])
    error.exit_code = code
    return error


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def _paths(source: Any) -> list[str]:
    sources = [source] if _is_path(source) else list(source)
    return [os.fspath(path) for path in sources]


def load(source: Any, to: str, table: str, **options: Any) -> Any:
    """Load rows into a table of PostgreSQL or CrateDB, each exactly once, and return the report.

    Args:
        source: a path, a folder, a URL, ``gen:DATASET?rows=10M``, a list of these; or a table, a data frame or a
            stream of Arrow.
        to: the server, such as ``postgres://me@localhost/db``.
        table: the table, such as ``public.trips``.
        options: for files those of ``sawmill load``; for Arrow ``mode``, ``verify`` and ``connections``.

    After any failure the same call loads exactly what is missing.
    """
    if hasattr(source, "__arrow_c_stream__"):
        return json.loads(load_stream(source, to, table, **options))
    return run("load", *_paths(source), to=to, table=table, **options)["report"]


def verify(source: Any, to: str, table: str, **options: Any) -> Any:
    """Compare a table with files: rows, non-null values of each column, content sum.

    Raises:
        Error: they differ (``exit_code`` 4).
    """
    return run("verify", *_paths(source), to=to, table=table, **options)


def like(source: Any, **options: Any) -> str:
    """Learn a spec from Parquet, CSV or a table of Arrow, and return its TOML for :func:`generate`."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        if hasattr(source, "__arrow_c_stream__"):
            import pyarrow
            import pyarrow.parquet

            path = os.path.join(folder, "sample.parquet")
            pyarrow.parquet.write_table(pyarrow.table(source), path)
        else:
            path = os.fspath(source)
        line = [*_PROGRAM, "gen", "--like", path, "--print", *_words(options)]
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode != 0:
            raise _error(done.stderr.removeprefix("error: "), done.returncode)
        return done.stdout


def drive(plan: str | os.PathLike[str], to: str, **options: Any) -> Any:
    """Run a load test: a plan's path or ``gen:DATASET``; return its result."""
    return run("drive", plan, to=to, **options)
