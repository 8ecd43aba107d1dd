"""The measured parts of docs/footer.md: decoders side by side, and the plot over the number of columns."""

import math
import re

from benchmark_text import commands, missing, nanoseconds, ratio, table

# The columns of the table: heading, name in the results, whether to show the ratio.
TABLE = [
    ("parquet 56", "parquet 56, default", False),
    ("57", "parquet 57, default", False),
    ("60", "parquet 60, default", False),
    ("60, skips", "parquet 60, skips", False),
    ("all chunks", "all chunks", True),
    ("2 threads", "all chunks, 2 threads", True),
    ("2 footers at once, half", "all chunks, 2 threads with a footer each", True),
    ("AVX2", "all chunks, AVX2/BMI2", True),
    ("portable", "all chunks, portable", True),
    ("with statistics", "all chunks and their statistics", True),
    ("10 columns", "10 columns and their statistics", True),
    ("first row group", "first row group", True),
]
COLOURS = {
    "parquet 56, default": "#b8b8b8",
    "parquet 57, default": "#969696",
    "parquet 60, default": "#6b6b6b",
    "parquet 60, skips": "#303030",
    "all chunks and their statistics": "#e08a1e",
    "all chunks, portable": "#7fb3d5",
    "all chunks": "#1f6fb2",
    "first row group": "#a0428c",
}
LEFT, TOP, WIDTH, HEIGHT, LEGEND = 70, 40, 520, 360, 230
FOOTER = re.compile(r"((float|text|mixed)_([\dx]+)), \d+ bytes")


# The results of machines with AVX-512, and of those without.
WITH, WITHOUT = "turns", "turns-avx2"


def tables_of(results, of=WITH):
    found = results.get(of)
    if not found or "failed" in found:
        return [], found["failed"] if found else "not measured"
    return [each for each in found["tables"] if "ways" in each], ""


def footer_table(results, of=WITH):
    """One row per footer: the time, and the speed-up over the way it is compared with."""
    tables, why = tables_of(results, of)
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
    where = results[of].get("machine")
    lines = [f"On {where}:", ""] if where else []
    lines += table(["footer"] + [heading for heading, _, _ in TABLE], rows)
    return "\n".join(lines + commands(["cargo bench -p sawmill-benches --features old-peers --bench footer_table"]))


def without_avx512(results):
    """The same for processors without AVX-512."""
    return footer_table(results, WITHOUT)


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


def scaling(results):
    """An SVG of decode time over the number of columns, 20 row groups, on logarithmic axes."""
    series = {}
    for each in tables_of(results)[0]:
        title = FOOTER.match(each["title"])
        if title and title[2] == "float":
            for way in each["ways"]:
                if way["way"] in COLOURS:
                    series.setdefault(way["way"], []).append((int(title[3]), way["seconds"] * 1e3))
    points = [point for line in series.values() for point in line] or [(1, 1)]
    decade = lambda values: (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
    (x0, x1), (y0, y1) = decade([x for x, _ in points]), decade([y for _, y in points])
    x = lambda value: LEFT + WIDTH * (math.log10(value) - x0) / max(x1 - x0, 1)
    y = lambda value: TOP + HEIGHT * (1 - (math.log10(value) - y0) / max(y1 - y0, 1))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + LEGEND} {TOP + HEIGHT + 60}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">Decoding a footer of FLOAT columns x 20 row groups, ms</text>',
    ]
    for power in range(x0, x1 + 1):
        at = x(10**power)
        out.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{TOP + HEIGHT}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{at:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{10**power:,}</text>')
    for power in range(y0, y1 + 1):
        at = y(10**power)
        label = f"{10**power:,}" if power >= 0 else f"{10**power:g}"
        out.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{LEFT + WIDTH}" y2="{at:.1f}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    out.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">columns</text>')
    labels = []
    for way, color in COLOURS.items():
        line = sorted(series.get(way, []))
        if not line:
            continue
        path = " ".join(f"{x(columns):.1f},{y(ms):.1f}" for columns, ms in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{x(c):.1f}" cy="{y(ms):.1f}" r="3" fill="{color}"/>' for c, ms in line]
        labels.append([y(line[-1][1]) + 4, way, color])
    labels.sort()
    for before, label in zip(labels, labels[1:]):
        label[0] = max(label[0], before[0] + 15)
    for at, way, color in labels:
        name = way if way.startswith("parquet") else f"sawmill, {way}"
        out.append(f'<text x="{LEFT + WIDTH + 10}" y="{at:.1f}" fill="{color}">{name}</text>')
    return "\n".join(out + ["</svg>\n"])
