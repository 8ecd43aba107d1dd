"""The measured parts of docs/footer.md: decoders side by side, and whole files."""

import re

from .text import commands, missing, nanoseconds, ratio, table

# The columns of the table: heading, name in the results, whether to show the ratio.
TABLE = [
    ("parquet 60", "parquet 60, default", False),
    ("it skips", "parquet 60, skips", False),
    ("all chunks", "all chunks", True),
    ("with statistics", "all chunks and their statistics", True),
    ("10 columns", "10 columns and their statistics", True),
    ("first row group", "first row group", True),
]
FOOTER = re.compile(r"((float|text|mixed)_([\dx]+)), \d+ bytes")


def tables_of(results):
    found = results.get("turns")
    if not found or "failed" in found:
        return [], found["failed"] if found else "not measured"
    return [each for each in found["tables"] if "ways" in each], ""


def footer_table(results):
    """One row per footer: the time, and the speed-up over the way it is compared with."""
    tables, why = tables_of(results)
    rows = []
    for each in tables:
        title = FOOTER.match(each["title"])
        if not title:
            continue
        ways = {way["way"]: way for way in each["ways"]}
        cells = [title[1]]
        for _, way, compared in TABLE:
            found = ways.get(way)
            if not found:
                cells.append("-")
            else:
                milliseconds = f"{found['seconds'] * 1e3:.3g}"
                cells.append(f"{milliseconds} ({ratio(found['times_as_fast'])})" if compared else milliseconds)
        rows.append(cells)
    if not rows:
        return missing("turns", why)
    where = results["turns"].get("machine")
    lines = [f"On {where}:", ""] if where else []
    lines += table(["footer"] + [heading for heading, _, _ in TABLE], rows)
    return "\n".join(lines + commands(["cargo bench -p sawmill-benches --features old-peers --bench footer_table"]))


def footer_files(results):
    """Page indexes, many small files, columns of wide files."""
    tables, why = tables_of(results)
    rows = []
    for each in tables:
        if FOOTER.match(each["title"]):
            continue
        for way in each["ways"]:
            same = way["way"] == way["as"]
            compared = "" if same else f"{ratio(way['times_as_fast'])} as fast as {way['as']}"
            rows.append([each["title"], way["way"], nanoseconds(way["seconds"] * 1e9), compared])
    if not rows:
        return missing("turns", why)
    lines = table(["what", "by", "time", ""], rows)
    return "\n".join(lines + commands(["cargo bench -p sawmill-benches --bench footer_files"]))
