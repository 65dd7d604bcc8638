"""Draws docs/pictures/report.svg, three charts of the example report, from its workbook: `make pages`."""

import math
import sys
from html import escape
from pathlib import Path

import openpyxl

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")  # Okabe and Ito's
WIDTH, HEIGHT, TOP = 1200, 430, 96
GREY, DARK, FONT = "#666", "#222", "font-family='DejaVu Sans,Helvetica,Arial,sans-serif'"


def table(book: openpyxl.Workbook, sheet: str, first: str) -> list[dict]:
    """The rows below the first head of a sheet that begins with `platform` and has a column of that name."""
    rows = list(book[sheet].iter_rows(values_only=True))
    start = next(number for number, row in enumerate(rows) if row[0] == "platform" and first in row)
    body = rows[start + 1 :]
    end = next((number for number, row in enumerate(body) if row[0] is None), len(body))
    return [dict(zip(rows[start], row, strict=True)) for row in body[:end]]


def text(
    x: float, y: float, words: object, size: int = 13, anchor: str = "start", fill: str = DARK, more: str = ""
) -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}'"
    return f"<text {place} fill='{fill}' {more}>{escape(str(words))}</text>"


def box(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{fill}' {more}/>"


def size(bytes: float) -> str:
    return f"{bytes:.0f} B" if bytes < 1024 else f"{bytes / 1024:.0f} KiB"


def trust(rows: list[dict], x: float) -> list[str]:
    """Each family's mean μ by operation, from green at 1 to orange at 1.5."""
    families = [name for name in list(rows[0])[4:] if name]
    families.sort(key=lambda name: sum(row[name] for row in rows))
    lines = [text(x, TOP, "Whom to trust: μ = max(p/m, m/p)", 15, more="font-weight='bold'")]
    for column, row in enumerate(rows):
        lines.append(text(x + 130 + 95 * column, TOP + 32, row["operation"], anchor="middle", fill=GREY))
    for line, name in enumerate(families):
        y = TOP + 44 + 46 * line
        lines.append(text(x, y + 26, name))
        for column, row in enumerate(rows):
            bad = min(max((row[name] - 1) / 0.5, 0), 1)
            fill = f"rgb({int(170 + 70 * bad)},{int(222 - 60 * bad)},{int(190 - 80 * bad)})"
            lines.append(box(x + 85 + 95 * column, y, 90, 42, fill))
            lines.append(text(x + 130 + 95 * column, y + 26, f"{row[name]:.2f}", anchor="middle"))
    return [*lines, text(x, TOP + 44 + 46 * len(families) + 22, "1 is exact; 1.5 is off by half", 12, fill=GREY)]


def use(rows: list[dict], x: float) -> list[str]:
    """The fastest schedule of each job, and what it gains over the library's own choice."""
    jobs = list(dict.fromkeys((row["operation"], row["size"]) for row in rows))
    choices = list(dict.fromkeys(row["fastest schedule"] for row in rows))
    lines = [text(x, TOP, "What to use, and its gain over the library", 15, more="font-weight='bold'")]
    for line, job in enumerate(jobs):
        y = TOP + 44 + 92 * line
        lines += [text(x, y + 20, job[0]), text(x, y + 40, job[1], 12, fill=GREY)]
        for column, row in enumerate(row for row in rows if (row["operation"], row["size"]) == job):
            left, gain = x + 78 + 98 * column, row["library / fastest schedule [×]"]
            colour = COLOURS[choices.index(row["fastest schedule"]) % len(COLOURS)]
            said = f"{gain:.2f}× faster" if gain > 1.01 else "tied" if gain > 0.99 else f"library {1 / gain:.2f}×"
            lines.append(box(left, y, 94, 54, colour, "fill-opacity='0.22'") + box(left, y, 5, 54, colour))
            lines.append(text(left + 49, y + 22, row["fastest schedule"], 12, "middle"))
            lines.append(text(left + 49, y + 42, said, 11, "middle", GREY))
            lines.append(text(left + 49, y + 70, size(row["bytes [B]"]), 11, "middle", GREY))
    return lines


def scatter(rows: list[dict], x: float) -> list[str]:
    """Predicted over measured on logarithmic axes, with the line where both are the same and a band of 10 %."""
    points = [(row["measured [µs]"], row["predicted [µs]"], row["family"]) for row in rows]
    points = [point for point in points if all(isinstance(value, int | float) for value in point[:2])]
    ends = [
        math.floor(math.log10(min(min(p[:2]) for p in points))),
        math.ceil(math.log10(max(max(p[:2]) for p in points))),
    ]
    left, bottom, side = x + 60, TOP + 274, 250

    def at(value: float) -> float:
        return side * (math.log10(value) - ends[0]) / (ends[1] - ends[0])

    low, high = 10 ** ends[0], 10 ** ends[1]
    band = [(low, low / 1.1), (high / 1.1, high / 1.21), (high, high), (high / 1.1, high), (low, low * 1.1), (low, low)]
    corners = " ".join(f"{left + at(max(a, low)):.1f},{bottom - at(max(b, low)):.1f}" for a, b in band)
    lines = [text(x, TOP, "Predicted over measured", 15, more="font-weight='bold'")]
    lines.append(box(left, bottom - side, side, side, "none", "stroke='#bbb'"))
    lines.append(f"<polygon points='{corners}' fill='#ddd'/>")
    lines.append(f"<line x1='{left}' y1='{bottom}' x2='{left + side}' y2='{bottom - side}' stroke='{GREY}'/>")
    for power in range(ends[0], ends[1] + 1):
        label = f"{10**power:,} µs" if power < 3 else f"{10 ** (power - 3):,} ms"
        lines.append(text(left + at(10**power), bottom + 18, label, 11, "middle", GREY))
        lines.append(text(left - 6, bottom - at(10**power) + 4, label, 11, "end", GREY))
    families = list(dict.fromkeys(point[2] for point in points))
    for measured, predicted, family in points:
        colour = COLOURS[families.index(family) % len(COLOURS)]
        centre = f"cx='{left + at(measured):.1f}' cy='{bottom - at(predicted):.1f}'"
        lines.append(f"<circle {centre} r='4' fill='{colour}' fill-opacity='0.75'/>")
    for number, family in enumerate(families):
        lines.append(
            f"<circle cx='{left + 14}' cy='{bottom - side + 18 + 20 * number}' r='5' fill='{COLOURS[number]}'/>"
        )
        lines.append(text(left + 26, bottom - side + 22 + 20 * number, family, 12))
    return [*lines, text(left + side / 2, bottom + 38, "measured; grey: within 10 %", 12, "middle", GREY)]


def picture(workbook: Path) -> str:
    book = openpyxl.load_workbook(workbook, read_only=False, data_only=True)
    comparison = table(book, "Comparison", "predicted [µs]")
    platforms = ", ".join(dict.fromkeys(row["platform"] for row in comparison))
    simulated = (
        "SIMULATED: measured in a simulator, not on hardware"
        if comparison[0]["simulated"] == "simulated"
        else "measured"
    )
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' {FONT}>",
        box(0, 0, WIDTH, HEIGHT, "#fff", "stroke='#ccc'"),
        text(24, 36, f"Broadcasts and trees on {platforms}", 20, more="font-weight='bold'"),
        box(24, 48, 390, 24, "#fdf0e5") + text(32, 65, simulated, 13, fill="#8a3b00"),
        *trust(table(book, "Errors", "operation"), 24),
        *use(table(book, "Selection", "fastest schedule"), 350),
        *scatter(comparison, 850),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture(Path(sys.argv[1])), encoding="utf-8")
