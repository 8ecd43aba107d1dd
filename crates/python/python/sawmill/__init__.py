"""Make Parquet files, read their footers, and load databases, each row exactly once.

Rows come and go as Arrow streams, which pyarrow, polars, pandas and DuckDB read and give without a copy:

>>> import pyarrow, sawmill
>>> pyarrow.table(sawmill.generate("contacts", rows=1000)).num_rows
1000

Functions on files run the command ``sawmill``, with its options as keywords: ``primary_key="id"`` is
``--primary-key id``, ``verify=True`` is ``--verify``, ``for_="30s"`` is ``--for 30s``. A notebook shows their progress.

Errors have the fields of the command's errors as JSON:

>>> try:
...     sawmill.footer("gone.parquet")
... except sawmill.Error as error:
...     print(error.code, error.exit_code)
failure 1
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, Sequence, Union

from ._sawmill import Error, Footer, Stream, __version__, footer, generate, load_stream, pgcopy
from ._sawmill import command as _command

__all__ = [
    "ArrowStream",
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


class ArrowStream(Protocol):
    """A table, a data frame or a stream of any library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


if TYPE_CHECKING:
    Path = Union[str, os.PathLike[str]]
    Paths = Union[Path, Sequence[Path]]

#: Starts the command from this installation.
_PROGRAM = [sys.executable, "-m", "sawmill"]


def main() -> None:
    """Run the command line of this process."""
    sys.exit(_command(_PROGRAM, sys.argv[1:]))


def _words(options: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words += [word for item in value for word in _option(option, item)]
        else:
            words += _option(option, value)
    return words


def _option(option: str, value: Any) -> list[str]:
    """An option and its value, which alone could be taken for an option."""
    word = _word(value)
    return [f"{option}={word}"] if word.startswith("-") else [option, word]


def _word(value: Any) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _tell(done: int, rows: int) -> None:
    """Called each second while a stream is loaded."""
    if _in_notebook():
        sys.stderr.write(f"load: {done:,} of {rows:,} rows\n")


def run(*words: Path, **options: Any) -> Any:
    """Run a command, and return its JSON. Progress and notes go to standard error. Ctrl-C stops it as on a terminal.

    >>> sawmill.run("footer", "trips.parquet")["files"][0]["rows"]
    1000

    Raises:
        Error: with ``code``, ``what``, ``where``, ``advice`` and ``exit_code``.
    """
    line = [*_PROGRAM, *map(_word, words), *_words(options), "--json"]
    environment = {"SAWMILL_PROGRESS": "1", **os.environ} if _in_notebook() else None
    process = subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=environment,
        # A terminal would send Ctrl-C to both processes, another program to this one alone: this one passes it on.
        start_new_session=True,
    )
    said: list[str] = []

    def forward() -> None:
        for text in process.stderr or ():
            said.append(text)
            if not text.startswith('{"error":'):
                sys.stderr.write(text)

    listener = threading.Thread(target=forward)

    def ended() -> str:
        out = process.stdout.read() if process.stdout else ""
        listener.join()
        process.wait()
        return out

    with process:
        interrupt = None
        while True:
            try:
                if listener.ident is None:
                    listener.start()
                out = ended()
                break
            except KeyboardInterrupt as asked:
                # It cleans up. A second signal ends it at once.
                process.send_signal(signal.SIGTERM)
                interrupt = asked
        if interrupt:
            raise interrupt
    if process.returncode != 0:
        raise _error("".join(said), process.returncode)
    return json.loads(out) if out.strip() else None


def _error(text: str, code: int) -> Error:
    lines = text.rstrip().splitlines() or [""]
    try:
        parts = json.loads(lines[-1])["error"]
    except (ValueError, KeyError, TypeError):
        parts = {"code": "failure", "what": text.strip(), "where": "", "advice": ""}
    shown = [parts[name] for name in ("what", "where", "advice") if parts[name]]
    error = Error(" - ".join(shown))
    for name in ("code", "what", "where", "advice"):
        setattr(error, name, parts[name])
    error.exit_code = code
    return error


def _paths(source: Paths) -> list[str]:
    if not isinstance(source, (str, os.PathLike, Iterable)):
        kind = type(source).__name__
        raise TypeError(f"{kind} has no __arrow_c_stream__: give a path, a list of paths, or a table or data frame of Arrow")
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    paths = [os.fspath(path) for path in sources]
    return [f"./{path}" if path.startswith("-") and path != "-" else path for path in paths]


def load(source: Paths | ArrowStream, to: str, table: str, **options: Any) -> Any:
    """Load rows into a table of PostgreSQL or CrateDB, each exactly once, and return the report.

    >>> sawmill.load("trips.parquet", "postgres://me@localhost/db", "trips", verify=True)["rows"]
    1000

    Args:
        source: a path, a folder, a URL, ``gen:DATASET?rows=10M``, a list of these; or a table, a data frame or a
            stream of Arrow.
        to: the server, such as ``postgres://me@localhost/db``.
        table: the table, such as ``public.trips``.
        options: for files those of ``sawmill load``; for Arrow ``mode``, ``verify`` and ``connections``.

    After any failure the same call loads exactly what is missing. The rows of a stream are held in memory.
    """
    if hasattr(source, "__arrow_c_stream__"):
        return json.loads(load_stream(source, to, table, **options))
    return run("load", *_paths(source), to=to, table=table, **options)["report"]


def verify(source: Paths, to: str, table: str, **options: Any) -> Any:
    """Compare a table with files: rows, non-null values of each column, content sum.

    >>> sawmill.verify("trips.parquet", "postgres://me@localhost/db", "trips")["target"]["rows"]
    1000

    Raises:
        Error: they differ (``code`` is ``mismatch``, ``exit_code`` 4).
    """
    return run("verify", *_paths(source), to=to, table=table, **options)


def like(source: Path | ArrowStream, **options: Any) -> str:
    """Learn a spec from files or a data frame, and return its TOML for :func:`generate`.

    >>> spec = sawmill.like("trips.parquet")
    >>> pyarrow.table(sawmill.generate(spec, rows=500)).num_rows
    500

    Args:
        source: a path, a folder or a URL of Parquet, CSV or NDJSON; or a table, a data frame or a stream of Arrow,
            which needs pyarrow.
        options: those of ``sawmill gen spec --like``, such as ``sample`` and ``no_verbatim``.
    """
    if not hasattr(source, "__arrow_c_stream__"):
        spec: str = run("gen", "spec", like=source, **options)
        return spec
    import tempfile

    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sample.parquet")
        pyarrow.parquet.write_table(pyarrow.table(source), path)
        return like(path, **options)


def drive(plan: Path, to: str, **options: Any) -> Any:
    """Run a load test: a plan's path or ``gen:DATASET``; return its result.

    >>> sawmill.drive("gen:orders", "null", rate=100, for_="1s")["valid"]
    True
    """
    return run("drive", *_paths(plan), to=to, **options)
