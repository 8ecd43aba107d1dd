"""Figures and tables as Markdown."""


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def commands(used):
    return ["", "```sh", *used, "```"] if used else []


def missing(name, why):
    return f"{name}: {why}"


def time(statistics):
    return nanoseconds(statistics["median"] * 1e9) if statistics else ""


def nanoseconds(value):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ns"


def memory(side):
    peak = side.get("peak_memory")
    return f"{peak['median'] / 2**20:.0f} MiB" if peak else ""


def rate(rows, seconds):
    return f"{rows / seconds / 1e6:.3g} M"


def ratio(times):
    return f"{times:.2f} x" if times < 10 else f"{times:.1f} x"
