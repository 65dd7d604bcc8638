"""A decision table: for each number of ranks and message size the first alternative of the advice,
or the MPI default where that is kept. The entry point is `decide`."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from commodel.advice import Ranking, Workload, advise
from commodel.advice.evidence import Evidence, describe_manual_values
from commodel.compare.combined_prediction import is_default_kept
from commodel.progress import report_within
from commodel.records import LIBRARY

# the basis of a row
BASIS_COLUMNS = (
    "platform",
    "simulated",
    "gain_over_default",
    "basis",
    "weights",
    "notes",
    "layout_name",  # `near` in place of the nodes of its ranks
)
COLUMNS = (
    *(
        "operation",
        "ranks",
        "leaves",
        "bytes",
        "algorithm",
        "layout",
        "seconds",
        "low",
        "high",
        "as_good",
        "doubt",
    ),
    *BASIS_COLUMNS,
)
NOTE_SEPARATOR = " | "  # separates two notes of a row


def decide(
    workloads: Sequence[Workload],
    evidence: Evidence,
    layouts: Sequence[str],
    only: Callable[[Workload], Sequence[str]],
    size_independent_operations: Collection[str] = (),
) -> pd.DataFrame:
    """Return a row for each workload: the first alternative of the advice, those tied with it, and
    the evidence for both. `only` returns the alternatives to consider, none for all. The
    `size_independent_operations` get, for each number of ranks, the alternative that is fastest on
    average over all sizes."""
    rows = []
    advised = {}
    platforms = {parameters.platform for parameters in evidence.sets} - {""}
    platform = evidence.resources.name or ", ".join(sorted(platforms))
    changed = describe_manual_values(evidence)
    if changed:
        platform = f"{platform or 'no platform'}, by hand: {changed}"
    simulated = any(parameters.simulated for parameters in evidence.sets)
    for number, workload in enumerate(workloads, 1):
        with report_within(f"workload {number} of {len(workloads)}"):
            advised[workload] = advise(workload, evidence, layouts, only(workload), streams=False)
    common = _find_common_choices(advised, size_independent_operations)
    adjusted = {
        workload: _put_first(advice, common.get(_operation_and_ranks(workload)))
        for workload, advice in advised.items()
    }
    groups: dict[tuple[str, int], list[Ranking]] = {}
    for workload, advice in adjusted.items():
        groups.setdefault(_operation_and_ranks(workload), []).append(advice)
    default_is_kept = {
        operation_and_ranks: _keeps_default(groups[operation_and_ranks])
        for operation_and_ranks in common
    }
    for workload, advice in adjusted.items():
        best = advice.frame.iloc[0]
        keeps_default = default_is_kept.get(_operation_and_ranks(workload), advice.keeps_default)
        choice = LIBRARY if keeps_default else best["alternative"]
        if keeps_default and advice.default:
            default = advice.default
            best = best.copy()
            best[["seconds", "low", "high"]] = default.seconds, default.low, default.high
            best["basis"] = default.source
        workload_columns = (
            workload.operation,
            int(best["ranks"]),
            workload.leaves,
            workload.bytes,
            choice,
            best["layout"],
        )
        tied = "" if keeps_default else list_tied(advice)
        prediction = best["seconds"], best["low"], best["high"], tied, best["doubt"]
        basis = (
            platform,
            simulated,
            advice.gain_over_default,
            best["basis"],
            describe_weights(advice),
            NOTE_SEPARATOR.join((*advice.notes, *advice.zero_weight_reasons)),
            best["layout_name"],
        )
        rows.append((*workload_columns, *prediction, *basis))
    return pd.DataFrame(rows, columns=COLUMNS)


def _find_common_choices(
    advised: Mapping[Workload, Ranking], operations: Collection[str]
) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the choice and layout with the least mean logarithm of times over all sizes, by
    operation and ranks."""
    groups: dict[tuple[str, int], list[Ranking]] = {}
    for workload, advice in advised.items():
        if workload.operation in operations:
            groups.setdefault(_operation_and_ranks(workload), []).append(advice)
    common = {}
    for operation_and_ranks, group in groups.items():
        times = pd.concat(
            [advice.frame.set_index(["alternative", "layout"])["seconds"] for advice in group],
            axis=1,
        )
        means = np.log(times.dropna()).mean(axis=1)
        if len(means):
            common[operation_and_ranks] = means.idxmin()
    return common


def _keeps_default(advised: Iterable[Ranking]) -> bool:
    """Return whether the MPI default is kept for all sizes: the mean gain of the common choice is
    within its uncertainty."""
    with_default = [(advice, advice.default) for advice in advised if advice.default]
    if not with_default:
        return False
    gains = np.log([advice.gain_over_default for advice, _ in with_default])
    deviations = [
        np.hypot(advice.deviations[0], default.caution) for advice, default in with_default
    ]
    return bool(is_default_kept(np.exp(gains.mean()), 1.0, float(np.mean(deviations))))


def _operation_and_ranks(workload: Workload) -> tuple[str, int]:
    return workload.operation, workload.ranks


def _put_first(advice: Ranking, choice: tuple[str, str] | None) -> Ranking:
    rows = advice.frame
    if choice is None or tuple(rows.loc[0, ["alternative", "layout"]]) == choice:
        return advice
    first = (rows["alternative"] == choice[0]) & (rows["layout"] == choice[1])
    slower = float(rows.loc[first, "seconds"].iloc[0] / rows["seconds"].iloc[0] - 1)
    gain = f"{100 * slower:.0f} % faster" if slower > 0 else "as fast"
    note = (
        f"{choice[0]} for all sizes, as a rule needs; here {rows['alternative'].iloc[0]} is "
        f"predicted to be {gain}"
    )
    order = np.argsort(~first.to_numpy(), kind="stable")
    deviations = tuple(advice.deviations[number] for number in order)
    rows = rows.iloc[order].reset_index(drop=True)
    return replace(
        advice, frame=rows, deviations=deviations, notes=[*advice.notes, note], lead=None
    )


def summarize_notes(table: pd.DataFrame) -> list[str]:
    """Return the notes on the whole table: each kind once, with the number of workloads and one
    example."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for row in table.itertuples():
        workload = Workload(
            operation=row.operation, bytes=row.bytes, leaves=row.leaves, ranks=row.ranks
        )
        for note in filter(None, row.notes.split(NOTE_SEPARATOR)):
            without_numbers = re.sub(r"\d+([.]\d+)?", "#", note)
            kind = without_numbers.replace("# doublings", "# doubling")
            kinds.setdefault(kind, []).append((note, workload.text))
    texts = []
    for notes in kinds.values():
        first, workload_text = notes[0]
        if len(notes) == len(table) and all(note == first for note, _ in notes):
            texts.append(first)
        else:
            texts.append(
                f"{len(notes)} of {len(table)} workloads, such as {workload_text}: {first}"
            )
    return texts


def describe_weights(advice: Ranking) -> str:
    """Return the weight of each model, for each placement if alternatives have both and weights
    differ."""
    text_of_placement = {
        placement: _format_weights(families) for placement, families in advice.weights.items()
    }
    first = next(iter(text_of_placement.values()))
    return (
        first
        if len(set(text_of_placement.values())) == 1
        else "; ".join(f"{placement} {text}" for placement, text in text_of_placement.items())
    )


def _format_weights(models: Mapping[str, float]) -> str:
    by_weight = sorted(models.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{name} {100 * weight:.0f} %" for name, weight in by_weight if weight > 0)


def list_tied(advice: Ranking) -> str:
    """Return the other alternatives that are statistically tied with the first."""
    rows = advice.frame.iloc[1:]
    layouts = advice.frame["layout"].nunique() > 1
    tied = rows[rows["as_good"]]
    return ", ".join(
        f"{row.alternative} {row.layout_name}" if layouts else row.alternative
        for row in tied.itertuples()
    )
