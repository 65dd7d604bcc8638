"""Predicted times as a result (`Predictions`): rows, the answer in a sentence, and notes on
intervals and validity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commodel.api.charts import draw_times
from commodel.api.result import Answer, describe_sources
from commodel.files.text_tables import format_answer, format_table
from commodel.parameters import ParameterSet
from commodel.records import DEFAULT_LABEL, LIBRARY, RECOMMENDED
from commodel.units import format_bytes, format_seconds

if TYPE_CHECKING:
    import altair

TIME_COLUMNS = ("measured", "time", "low", "high")
MAX_NAMED = 4  # models in the answer
DEFAULT_ARGUMENTS = (
    "Arguments, such as segment sizes, have their defaults; `commodel advise` also ranks others."
)


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Answer):
    """Predicted times: a row for each pattern and model."""

    origins: Sequence[str] = ()  # of the notes, those on where the values come from
    folders: str = ""  # of the runs that the evidence is from, in a line

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, Any]],
        origins: Sequence[str],
        sets: Sequence[ParameterSet],
        folders: str = "",
        has_defaults: bool = False,
    ) -> Predictions:
        """Return the result of rows, with notes on the origin of their values. `has_defaults`:
        arguments of algorithms have their defaults."""
        origins = [f"{line}." for line in origins]
        provenance = describe_sources(sets)
        arguments = [DEFAULT_ARGUMENTS] if has_defaults else []
        notes = [*origins, *arguments, *_list_flaws(rows), *_describe_intervals(rows)]
        return cls(rows, _format_answer_sentence(rows), notes, provenance, origins, folders)

    def plot(self) -> altair.Chart:
        """Return a chart of the predicted times, with their intervals."""
        named = self.frame.assign(name=[_name_row(row, self.rows) for row in self.rows])
        return draw_times(named, self.sentence.rstrip("."))

    def text(self, verbose: bool = True) -> str:
        numbers = {text.removesuffix("."): number for number, text in enumerate(self.notes, 1)}
        table = format_table(
            [_make_table_row(row, numbers) for row in self.rows], TIME_COLUMNS, fold=True
        )
        return format_answer(self.sentence, table, self.notes, verbose)


def _list_flaws(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the validities that have a reason, each once, as sentences."""
    return [
        f"{text}."
        for text in dict.fromkeys(row["validity"] for row in rows)
        if text.partition(": ")[2]
    ]


def _make_table_row(row: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    """Return a row of the table: without an interval if values have none, and with the number of
    the validity's note. Its validity is "no information" if the interval is too wide."""
    from commodel.predictions.interval_basis import NO_INFORMATION, is_informative

    names = [
        name
        for name in row
        if not name.startswith("parameter_") and name not in ("basis", "validity")
    ]
    cells = {{"seconds": "time"}.get(name, name): row[name] for name in names}
    number = f" [{numbers[row['validity']]}]" if row["validity"] in numbers else ""
    informative = is_informative(row["low"], row["high"])
    return (
        cells
        | {"bytes": format_bytes(row["bytes"])}
        | ({} if row["low"] < row["high"] else {"low": None, "high": None})
        | {
            "validity": (row["validity"].partition(": ")[0] if informative else NO_INFORMATION)
            + number
        }
    )


def _describe_intervals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each basis of intervals on the meaning of low and high."""
    from commodel.predictions.interval_basis import IntervalBasis

    with_interval = [row for row in rows if row["low"] < row["high"]]
    if not with_interval:
        return ["The values have no intervals, so the predictions have none."]
    return [
        f"Low to high: {IntervalBasis.parse(text).sentence}."
        for text in dict.fromkeys(row["basis"] for row in with_interval)
    ]


def _format_answer_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the fastest alternative of a workload by each model, the predicted times of a single
    alternative, or the range of predictions over several workloads; by the recommended prediction
    and valid ones if there are any."""
    alternatives = {(row["algorithm"], row["topology"], row["layout"]) for row in rows}
    workloads = {(row["operation"], row["ranks"], row["bytes"]) for row in rows}
    predicted = [row for row in rows if row["seconds"] == row["seconds"]]
    valid = [
        row
        for row in predicted
        if row["model"] in (RECOMMENDED, LIBRARY) or not row["validity"].partition(": ")[2]
    ]
    predicted = valid or predicted
    families = list(dict.fromkeys(row["model"] for row in predicted))
    first = rows[0]
    over = "" if first["topology"] and len(alternatives) > 1 else f" over {first['ranks']} ranks"
    workload = f"{first['operation']}{over}, {format_bytes(first['bytes'])}"
    if not predicted:
        return f"No model has a prediction of {workload}."
    if len(alternatives) > 1 and (len(workloads) == 1 or first["topology"]):
        by_name: dict[str, list[str]] = {}
        for family in families:
            row = min(
                (row for row in predicted if row["model"] == family), key=lambda row: row["seconds"]
            )
            time = format_seconds(row["seconds"])
            of_default = family == LIBRARY
            by_name.setdefault(_name_alternative(row), []).append(
                f"({time})" if of_default else f"by {family} ({time})"
            )
        named = [f"{name} {', '.join(models[:MAX_NAMED])}" for name, models in by_name.items()]
        lowest = min(row["seconds"] for row in predicted)
        has_lower = any(row["seconds"] < lowest for row in rows)  # false for NaN
        kinds = "recommended and valid" if RECOMMENDED in families else "valid"
        fastest = (
            f"Fastest of the {kinds} predictions of {workload}"
            if has_lower
            else f"Fastest {workload}"
        )
        return f"{fastest}: {_join_first(named, '; ')}."
    if len(workloads) == 1 and families == [LIBRARY]:
        return f"{DEFAULT_LABEL}, {workload}: {_format_default(predicted[0])}."
    if len(workloads) == 1:
        named = [f"{format_seconds(row['seconds'])} by {row['model']}" for row in predicted]
        measured = (
            f"; measured: {format_seconds(first['measured'])}" if first.get("measured") else ""
        )
        return f"{_name_alternative(first)} {workload}: {_join_first(named, ', ')}{measured}."
    shortest, longest = (select(predicted, key=lambda row: row["seconds"]) for select in (min, max))
    ends = [
        f"{format_seconds(row['seconds'])} "
        f"({_name_alternative(row)}, {row['ranks']} ranks, {format_bytes(row['bytes'])})"
        for row in (shortest, longest)
    ]
    return (
        f"{first['operation']}, {len(rows)} predictions by {', '.join(families[:MAX_NAMED])}: "
        f"{' to '.join(ends)}."
    )


def _format_default(row: Mapping[str, Any]) -> str:
    """Return a time of the MPI default with its interval, and how far it is extrapolated."""
    seconds, low, high = (format_seconds(row[name]) for name in ("seconds", "low", "high"))
    _, _, reason = row["validity"].partition(": ")
    extrapolated = f", extrapolated by {reason}" if reason else ""
    return f"{seconds} [{low}, {high}]{extrapolated}"


def _join_first(texts: list[str], separator: str) -> str:
    return separator.join([*texts[:MAX_NAMED], *(["…"] if len(texts) > MAX_NAMED else [])])


def _name_row(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the alternative and the model of a row, and the other values that differ between the
    rows."""
    parts = [_name_alternative(row), str(row["model"])]
    for key, form in (("ranks", "{} ranks"), ("bytes", "{}"), ("layout", "{}")):
        if len({other[key] for other in rows}) > 1:
            parts.append(form.format(format_bytes(row[key]) if key == "bytes" else row[key]))
    return ", ".join(parts)


def _name_alternative(row: Mapping[str, Any]) -> str:
    if row["model"] == LIBRARY:
        return DEFAULT_LABEL
    return row["algorithm"] or row["topology"] or row["operation"]
