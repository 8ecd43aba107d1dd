"""Pictures of results as self-contained SVG that follows the reader's light or dark theme."""

from html import escape

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1d2433 }
.note { font-size: 11px; fill: #5b6475 }
.axis { stroke: #c9cfda; stroke-width: 1 }
.ours { fill: #0b7285; stroke: #0b7285 } .theirs { fill: #adb5bd; stroke: #adb5bd }
.range { stroke: #1d2433; stroke-width: 1.5 }
.s0 { stroke: #0b7285; fill: #0b7285 } .s1 { stroke: #c2255c; fill: #c2255c }
.s2 { stroke: #e67700; fill: #e67700 } .s3 { stroke: #5f3dc4; fill: #5f3dc4 }
polyline { fill: none !important; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ef } .note { fill: #9aa3b2 } .axis { stroke: #3b4252 } .range { stroke: #e6e9ef }
  .ours { fill: #3bc9db; stroke: #3bc9db } .theirs { fill: #6c757d; stroke: #6c757d }
  .s0 { stroke: #3bc9db; fill: #3bc9db } .s1 { stroke: #f783ac; fill: #f783ac }
  .s2 { stroke: #ffa94d; fill: #ffa94d } .s3 { stroke: #b197fc; fill: #b197fc }
}
</style>"""


def bars(title, rows):
    """A bar for each row of (name, statistics, ours) shows the median; a line spans the fastest and slowest run."""
    # A letter of the font is at most seven pixels wide.
    left, width, line = 16 + 7 * max(len(name) for name, _, _ in rows), 500, 24
    height = 40 + line * len(rows)
    longest = max(wall["max"] for _, wall, _ in rows) or 1
    scale = width / longest
    text = [head(left + width + 90, height, title)]
    for place, (name, wall, ours) in enumerate(rows):
        y = 34 + place * line
        kind = "ours" if ours else "theirs"
        text.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        text.append(f'<rect class="{kind}" x="{left}" y="{y}" width="{max(wall["median"] * scale, 1):.1f}" height="17"/>')
        low, high = left + wall["min"] * scale, left + wall["max"] * scale
        text.append(f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{y + 8.5}" y2="{y + 8.5}"/>')
        text.append(f'<text class="note" x="{high + 6:.1f}" y="{y + 13}">{seconds(wall["median"])}</text>')
    return "\n".join(text) + "\n</svg>\n"


def lines(title, series):
    """A line for each of (name, [(x, statistics)]), over evenly spaced x."""
    left, top, width, height = 60, 40, 480, 240
    highest = max(wall["median"] for _, points in series for _, wall in points) or 1
    xs = sorted({x for _, points in series for x, _ in points})
    step = width / max(len(xs) - 1, 1)
    text = [head(left + width + 220, top + height + 40, title)]
    for share in (0, 0.5, 1):
        y = top + height * (1 - share)
        text.append(f'<line class="axis" x1="{left}" x2="{left + width}" y1="{y}" y2="{y}"/>')
        text.append(f'<text class="note" x="{left - 6}" y="{y + 4}" text-anchor="end">{seconds(highest * share)}</text>')
    for place, x in enumerate(xs):
        text.append(f'<text class="note" x="{left + place * step:.1f}" y="{top + height + 18}" text-anchor="middle">{x}</text>')
    for number, (name, points) in enumerate(series):
        at = [(left + xs.index(x) * step, top + height * (1 - wall["median"] / highest)) for x, wall in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        text.append(f'<polyline class="s{number % 4}" points="{path}"/>')
        text += [f'<circle class="s{number % 4}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in at]
        y = top + 8 + number * 20
        text.append(f'<rect class="s{number % 4}" x="{left + width + 24}" y="{y - 9}" width="12" height="12"/>')
        text.append(f'<text x="{left + width + 42}" y="{y + 2}">{escape(name)}</text>')
    return "\n".join(text) + "\n</svg>\n"


def head(width, height, title):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{escape(title)}">\n{STYLE}\n<text x="8" y="20">{escape(title)}</text>'
    )


def seconds(value):
    if value == 0:
        return "0"
    return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"
