"""Prices of a kernel as people and programs read them: a row a family, and its iterations.

A kernel whose messages go while processes compute, at the speeds that a file of them says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from commodel.advice.evidence import Evidence
from commodel.cli._output import as_csv, emit, table
from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.models.parameter_sets import BY_HAND, note
from commodel.models.speeds import read_speeds
from commodel.patterns.build import parted
from commodel.patterns.layouts import processes_of
from commodel.patterns.operations import given_of, operation, own_spelling, parameters, tiles
from commodel.patterns.points import Setting
from commodel.patterns.rectangles import write
from commodel.price.kernel_times import RULED, by_sums, computation
from commodel.price.predictions import predict
from commodel.price.validity import PriceStatus
from commodel.records import Point
from commodel.units import format_bytes, format_seconds

GENERAL, SUMS = "messages", "sums"  # how a family's price is made: from its messages, or by the paper's rule
ITERATIONS_SHOWN = 5  # of the dearest iterations


@dataclass(frozen=True, eq=False)
class Priced:
    """`rows` have a family and a rule each; `iterations` the first of those that are alike, how many there are, and
    what one costs in every row."""

    point: Point
    simulated: bool
    rows: list[dict[str, object]]
    iterations: list[dict[str, object]]
    hiding: float | None = None  # seconds that the slowest process computes beside its messages; NaN: nobody knows

    @classmethod
    def of(cls, point: Point, evidence: Evidence) -> Priced:
        parts = parted(point)
        named = parameters(point.operation, point.ranks)
        overlapped = named.get("overlapped", False)
        hiding = float(operation(point.operation).tiles(point.ranks, **named).seconds.max()) if overlapped else None
        rows, columns = [], {}
        for fitted in evidence.sets:
            for rule in (GENERAL, SUMS) if fitted.family in RULED and fitted.values and not overlapped else (GENERAL,):
                cost = by_sums if rule == SUMS else None
                (whole,) = predict(fitted, [point], strict=False, cost=cost)
                by_hand = {BY_HAND: note(fitted)} if any(map(note, evidence.sets)) else {}
                times = {name: _number(getattr(whole, name)) for name in ("seconds", "low", "high")}
                rows.append({"family": whole.family, "rule": rule, **by_hand, **times, "status": whole.status})
                if len(parts) > 1:
                    prices = predict(fitted, [part for part, _ in parts], strict=False, draws=0, cost=cost)
                    columns[whole.family, rule] = [_number(price.seconds) for price in prices]
        by_name = {_column(*names): column for names, column in columns.items()}
        iterations = [
            {"iteration": _first(part), "count": count} | {name: column[number] for name, column in by_name.items()}
            for number, (part, count) in enumerate(parts)
            if by_name
        ]
        return cls(point, any(entry.simulated for entry in evidence.sets), rows, iterations, hiding)

    @property
    def about(self) -> dict[str, object]:
        names = ("platform", "operation", "algorithm", "layout", "ranks", "nodes", "bytes")
        about = {name: getattr(self.point, name) for name in names} | {"simulated": self.simulated}
        count = sum(entry["count"] for entry in self.iterations) or 1
        about |= {} if self.hiding is None else {"computation": _number(self.hiding)}
        return about | {"iterations": count, "different": len(self.iterations) or 1}

    @property
    def dearest(self) -> list[dict[str, object]]:
        """By the median of what families say that see sizes: first and last, how many, and their share of the whole."""
        heard = {_column(row["family"], row["rule"]) for row in self.rows if PriceStatus.votes(row["status"])}
        priced = ({**entry, "times": _times(entry, heard)} for entry in self.iterations)
        timed = [entry for entry in priced if entry["times"]]
        timed.sort(key=lambda entry: -median(entry["times"]))
        whole = sum(entry["count"] * median(entry["times"]) for entry in timed)
        return [
            {
                "iterations": _span(entry),
                "count": entry["count"],
                "median": median(entry["times"]),
                "least": min(entry["times"]),
                "most": max(entry["times"]),
                "share": entry["count"] * median(entry["times"]) / whole if whole else 0.0,
            }
            for entry in timed[:ITERATIONS_SHOWN]
        ]

    @property
    def sentences(self) -> list[str]:
        about = self.about
        where = f" of {about['platform']}{' (simulated)' if about['simulated'] else ''}" if about["platform"] else ""
        nodes = "1 node" if about["nodes"] == 1 else f"{about['nodes']} nodes"
        text = (
            f"{about['operation']}, {format_bytes(about['bytes'])} a unit, {about['ranks']} processes on {nodes}{where}"
        )
        if about["iterations"] > 1:
            text += f": {about['iterations']} iterations, {about['different']} of them different"
        lines = [f"{text}; communication alone, predicted."]
        if self.hiding is not None:
            lines.append(
                f"Overlapped: priced is what {format_seconds(self.hiding)} of computation an iteration do not hide."
                if self.hiding == self.hiding
                else "Overlapped, but nobody says how long processes compute: give --speeds, or speeds in --partition."
            )
        if any(row["rule"] == SUMS for row in self.rows):
            lines.append("sums: by the τ–Lop paper's rule for this family, messages added up as if each were alone.")
        return lines


def _first(part: Point) -> int:
    return parameters(part.operation, part.ranks)["iteration"]


def _span(entry: dict) -> str:
    first, last = entry["iteration"], entry["iteration"] + entry["count"] - 1
    return str(first) if first == last else f"{first}-{last}"


def _column(family: str, rule: str) -> str:
    return f"{family} {rule}" if rule == SUMS else family


def _times(entry: dict, heard: set[str]) -> list[float]:
    return [value for name, value in entry.items() if name in heard and value is not None]


def _number(value: float) -> float | None:
    return value if value == value else None


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The sets; of a folder all that lie in it."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
        elif inside := sorted(path.glob("*.yaml")):
            files += inside
        else:
            raise UserError("found no parameter set (.yaml) in this folder", file=path)
    return files


def write_kernel_tables(priced: Priced, style: str, out: Path | None) -> None:
    if style == "xlsx":
        from commodel.report.kernel_workbooks import write_kernel

        write_kernel(priced.rows, priced.iterations, priced.sentences, priced.simulated, out)
    elif style == "json":
        whole = priced.about | {"families": priced.rows, "by_iteration": priced.iterations}
        emit(json.dumps(whole, indent=1), out)
    elif style == "csv":
        emit(as_csv(priced.rows), out)
    else:
        emit(as_table(priced), out)


def as_table(priced: Priced) -> str:
    parts = [table([_shown(row) for row in priced.rows])]
    if priced.dearest:
        rows = [entry | {"share": f"{100 * entry['share']:.1f} %"} for entry in priced.dearest]
        times = ("median", "least", "most")
        shown = [row | {name: format_seconds(row[name]) for name in times} for row in rows]
        parts.append("The dearest iterations, what each of them costs by all families:\n" + table(shown))
    return "\n\n".join([*parts, "\n".join(priced.sentences)])


def _shown(row: dict) -> dict:
    exact = row["low"] == row["seconds"] == row["high"]
    times = {name: "-" if row[name] is None else format_seconds(row[name]) for name in ("seconds", "low", "high")}
    return row | times | ({"low": "-", "high": "-"} if exact else {})


@contextmanager
def at_speeds(point: Point, speeds: Path | None, setting: Setting) -> Iterator[tuple[Point, bool]]:
    """The point over a partition that says how fast each process computes its rectangle, itself without speeds; and
    whether the speeds are only declared."""
    if speeds is None:
        yield point, False
        return
    kinds, declared = processes_of(point.layout, point.ranks, dict(setting.types)), read_speeds(speeds)
    try:
        curves = declared.curves("gemm", kinds)
    except UserError as error:
        raise UserError(error.message, file=speeds) from None
    tiling = tiles(point.operation, point.ranks)
    with TemporaryDirectory(prefix="commodel-") as folder:
        path = Path(folder) / "partition.csv"
        write_text(path, write(replace(tiling, speed=computation(tiling, curves).speed)))
        rest = [
            f"{name}={value}" for name, value in _written(point.operation) if name not in ("n", "grid", "partition")
        ]
        spelled = own_spelling(":".join(["summa", f"partition={path}", *rest]))
        yield replace(point, operation=spelled), declared.simulated


def _written(text: str) -> list[tuple[str, str]]:
    """The parameters of an operation as it spells them."""
    written = {parameter.name: parameter.write for parameter in operation(text).parameters}
    return [(name, written[name](value)) for name, value in given_of(text).items()]
