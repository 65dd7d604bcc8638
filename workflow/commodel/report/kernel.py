"""Prices of a kernel as a workbook: a row a family, and what every iteration costs by each."""

from pathlib import Path

import pandas as pd

from commodel.report.shape import MICRO, Answer, Column, Report, Section, table
from commodel.report.xlsx.workbook import write_xlsx

TIMES = ("seconds", "low", "high")


def write_kernel(rows: list[dict], iterations: list[dict], sentences: list[str], simulated: bool, path: Path) -> None:
    """Times in seconds, None where a family has no price."""
    frame = pd.DataFrame(rows)
    columns = [
        *(Column(name, name) for name in frame if name not in (*TIMES, "status")),
        *(Column(name, f"{name.replace('seconds', 'time')} [µs]", "number") for name in TIMES),
        Column("status", "status"),
    ]
    scaled = frame.assign(**{name: MICRO * frame[name].astype(float) for name in TIMES})
    sections = [
        Section(
            "Families",
            "",
            (Answer("What is priced", tuple(sentences)), table("Families", "What it costs", columns, scaled)),
        )
    ]
    if iterations:
        every = pd.DataFrame(iterations)
        names = [name for name in every if name not in ("iteration", "count")]
        every = every.assign(**{name: MICRO * every[name].astype(float) for name in names})
        columns = [Column("iteration", "from", "count"), Column("count", "alike", "count")]
        columns += [Column(name, f"{name} [µs]", "number") for name in names]
        note = "One row for iterations that follow one another and send the same; times are of one of them."
        sections.append(Section("Iterations", note, (table("Iterations", "Iteration by iteration", columns, every),)))
    banner = "SIMULATED: the values were fitted on a simulator, not on hardware." if simulated else ""
    write_xlsx(Report("commodel kernel", "prices of a kernel's communication", banner, tuple(sections)), path)
