"""The measured parts of docs/footer.md: decoders side by side, and whole files."""

import re

from .text import commands, missing, nanoseconds, ratio, table

# The columns of the table: heading, the title of its figures in the results, the way.
TABLE = [
    ("decoded", "Footers", "sawmill"),
    ("again", "Footers", "sawmill, again"),
    ("page indexes", "Page indexes", "sawmill"),
    ("3 columns converted", "To the metadata of parquet 60", "3 columns"),
    ("all converted", "To the metadata of parquet 60", "all"),
]
# The files of the table, row groups x columns: the middle, and each writer.
FILES = [
    "pyarrow_mixed_1x20", "pyarrow_mixed_75x8", "pyarrow_pages_600x20", "pyarrow_mixed_codecs_5000x40",
    "pyarrow_uniform_20x10000", "duckdb_5x20", "polars_100x13", "tpch_lineitem",
]
FOREIGN = re.compile(r"(?P<table>Footers|Page indexes|To the metadata of parquet 60): (?P<file>\w+)")


def tables_of(results):
    found = results.get("turns")
    if not found or "failed" in found:
        return [], found["failed"] if found else "not measured"
    return [each for each in found["tables"] if "ways" in each], ""


def footer_table(results):
    """How many times as fast as the `parquet` crate, by file of another writer; the smallest lead first."""
    tables, why = tables_of(results)
    files = {}
    for each in tables:
        if title := FOREIGN.match(each["title"]):
            for way in each["ways"]:
                files.setdefault(title["file"], {})[title["table"], way["way"]] = way
    rows = []
    for file, ways in files.items():
        if file not in FILES:
            continue
        peer = ways["Footers", "parquet 60, skips"]["seconds"]
        cells = [ways.get((title, way)) for _, title, way in TABLE]
        shown = [ratio(cell["times_as_fast"]) if cell else "-" for cell in cells]
        rows.append((cells[0]["times_as_fast"], [file, nanoseconds(peer * 1e9), *shown]))
    if not rows:
        return missing("turns", why)
    where = results["turns"].get("machine")
    lines = [f"On {where}:", ""] if where else []
    head = ["file", "parquet 60", *(heading for heading, _, _ in TABLE)]
    return "\n".join(lines + table(head, [row for _, row in sorted(rows)]) + commands([
        "python scripts/peers/files/foreign_footers.py /tmp/foreign",
        "SAWMILL_FOREIGN_FOOTERS=/tmp/foreign cargo bench -p sawmill-benches --features newest --bench footer_foreign",
    ]))


def footer_files(results):
    """Page indexes, many small files, columns of wide files."""
    tables, why = tables_of(results)
    rows = []
    for each in tables:
        if FOREIGN.match(each["title"]):
            continue
        for way in each["ways"]:
            same = way["way"] == way["as"]
            if not same and not way["way"].startswith("sawmill"):
                continue
            compared = "" if same else f"{ratio(way['times_as_fast'])} as fast as {way['as']}"
            rows.append([each["title"], way["way"], nanoseconds(way["seconds"] * 1e9), compared])
    if not rows:
        return missing("turns", why)
    lines = table(["what", "by", "time", ""], rows)
    return "\n".join(lines + commands(["cargo bench -p sawmill-benches --bench footer_files"]))
