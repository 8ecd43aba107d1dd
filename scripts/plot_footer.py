#!/usr/bin/env python3
"""The scaling plot of docs/footer.md, from the output of the benchmark `footer_table`.

    python scripts/plot_footer.py docs/footer-figures.txt docs/footer-scaling.svg
    python scripts/plot_footer.py docs/footer-figures.txt     # the table, as Markdown

Decode time by the number of columns, 20 row groups, both axes logarithmic. Standard library only.
"""

import math
import re
import sys

WAYS = {
    "parquet 56, default": "#b8b8b8",
    "parquet 57, default": "#969696",
    "parquet 60, default": "#6b6b6b",
    "parquet 60, skips": "#303030",
    "all chunks and their statistics": "#e08a1e",
    "all chunks, portable": "#7fb3d5",
    "all chunks": "#1f6fb2",
    "index pass": "#2e8b57",
    "first row group": "#a0428c",
}
LEFT, TOP, WIDTH, HEIGHT, LEGEND = 70, 40, 520, 360, 230


def read(path):
    """{way: [(columns, ms)]} of the float footers."""
    series, columns = {}, None
    for line in open(path, encoding="utf-8"):
        title = re.match(r"(\w+), \d+ bytes", line)
        if title:
            float_footer = re.match(r"float_(\d+)$", title[1])
            columns = int(float_footer[1]) if float_footer else None
        cells = [cell.strip() for cell in line.split("|")]
        if columns and len(cells) > 4 and cells[1] in WAYS:
            series.setdefault(cells[1], []).append((columns, float(cells[2])))
    return series


# Columns of the table: heading, way, whether the ratio is shown.
TABLE = [
    ("parquet 56", "parquet 56, default", False),
    ("57", "parquet 57, default", False),
    ("60", "parquet 60, default", False),
    ("60, skips", "parquet 60, skips", False),
    ("all chunks", "all chunks", True),
    ("2 threads", "all chunks, 2 threads", True),
    ("AVX2", "all chunks, AVX2/BMI2", True),
    ("portable", "all chunks, portable", True),
    ("index pass", "index pass", True),
    ("with statistics", "all chunks and their statistics", True),
    ("10 columns", "10 columns and their statistics", True),
    ("first row group", "first row group", True),
]


def table(path):
    """One row a footer: ms, and how many times as fast as what the way is compared with."""
    rows = {}
    for line in open(path, encoding="utf-8"):
        title = re.match(r"(\w+), \d+ bytes", line)
        if title:
            ways = rows.setdefault(title[1], {})
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 4 and re.match(r"[\d.]+$", cells[2]) and rows:
            ways[cells[1]] = (float(cells[2]), cells[3])
    print("| footer |" + "".join(f" {heading} |" for heading, _, _ in TABLE))
    print("|---|" + "---|" * len(TABLE))
    for footer, ways in rows.items():
        cells = []
        for _, way, ratio in TABLE:
            ms, times = ways.get(way, (None, ""))
            cells.append("-" if ms is None else f"{ms:.3g}" + (f" ({float(times):.1f} x)" if ratio else ""))
        print(f"| {footer} | " + " | ".join(cells) + " |")


def main():
    if len(sys.argv) < 3:
        return table(sys.argv[1])
    series = read(sys.argv[1])
    points = [point for line in series.values() for point in line]
    if not points:
        sys.exit(f"{sys.argv[1]}: no figures of float footers")
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
    for way, color in WAYS.items():
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
    out.append("</svg>\n")
    with open(sys.argv[2], "w", encoding="utf-8") as svg:
        svg.write("\n".join(out))


if __name__ == "__main__":
    main()
