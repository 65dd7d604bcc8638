"""Collection of a campaign's raw files: one table of observations with a row for each sample
(`collect_samples`), and a summary of each case (`summarize_raw`)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from commodel.errors import UserError
from commodel.files.results_folder import DONE, PROVENANCE
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.tables import SUMMARY, list_columns
from commodel.patterns.layouts import count_case_nodes, format_nodes
from commodel.records import Batch, Plan
from commodel.results.attempts import read_attempts
from commodel.results.provenance import read_setting
from commodel.results.raw_samples import (
    SUFFIXES,
    UNFINISHED,
    DamagedError,
    find_raw_file,
    make_raw_file_path,
    read_marker,
    read_samples,
    tabulate_unmeasured,
)
from commodel.stats import compute_median_interval, find_worst_stop

DAMAGED_SUFFIX = ".damaged"
# of a stream of waves: latency of the first and of the last one
LATENCY_COLUMNS = ("first", "last")
# only in samples of some programs
OPTIONAL_COLUMNS = ("count", "cpu", "computation", *LATENCY_COLUMNS)
CASE_COLUMNS = ("kind", "platform", "simulated", "name", "batch", "setting")
# Columns that vary between samples.
SAMPLE_COLUMNS = ("pass", "sample", "seconds", "skew", "valid", "stop", *OPTIONAL_COLUMNS)
# Columns that do not distinguish cases of a probe or points of an operation.
NOT_SETTINGS = {"id", *CASE_COLUMNS, *SAMPLE_COLUMNS}


def collect_samples(
    plan: Plan, raw: AnyPath, unfinished: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the samples of all cases of the plan, and the table of the cases without a valid
    sample, each with the reason.

    With `unfinished`, a case that was neither measured nor given up is listed in that table;
    otherwise it is an error.
    """
    measured: list[dict[str, Any]] = []  # a row for each measured case
    samples: dict[str, list[np.ndarray]] = {name: [] for name in SAMPLE_COLUMNS}  # of all cases
    unmeasured: list[dict[str, Any]] = []  # a row for each case without a valid sample
    damaged: list[DamagedError] = []
    for batch in plan.batches:
        folder = raw / batch.name
        setting = read_setting(folder / PROVENANCE)
        for case, columns, extent in _list_planned(plan, batch):
            if not (folder / f"{case}.csv").exists():
                unmeasured.append(
                    {"id": case, **columns, **extent} | _explain_missing(folder, case)
                )
            path = find_raw_file(folder, case)
            if path:
                try:
                    rows = read_samples(path, case)
                except DamagedError as error:
                    damaged.append(error)
                    _set_damaged_aside(path)
                    continue
                measured.append({"id": case, **columns, "setting": setting, "rows": len(rows)})
                for name, column in samples.items():
                    column += [row.get(name, np.nan) for row in rows]
    if damaged:
        count = f"{len(damaged)} file{'' if len(damaged) == 1 else 's'} moved aside"
        raise UserError(
            f"{damaged[0].format_message()}; {count}: run again to measure these cases anew"
        )
    remaining = [row for row in unmeasured if row["status"] == UNFINISHED]
    if remaining and not unfinished:
        example = f"{remaining[0]['id']} ({remaining[0]['reason']})"
        message = (
            f"{len(remaining)} cases are neither measured nor given up, such as {example}: run "
            "again"
        )
        raise UserError(message, file=raw / remaining[0]["batch"])
    if not measured:
        raise UserError(f"nothing has been measured yet in {raw}")
    blank = {"pair": "", "where": ""}  # points have none, and there may be no probes
    cases = pd.DataFrame([blank | row for row in measured])
    observations = cases.loc[cases.index.repeat(cases.pop("rows"))].reset_index(drop=True)
    observations = observations.assign(
        **{name: np.array(column) for name, column in samples.items()}
    )
    empty = [name for name in OPTIONAL_COLUMNS if observations[name].isna().all()]
    empty += ["setting"] if observations["setting"].eq("").all() else []
    return observations.drop(columns=empty), tabulate_unmeasured(unmeasured)


def _set_damaged_aside(path: AnyPath) -> None:
    """Rename a damaged file, to keep it for inspection, and mark its batch as not done."""
    safe_path = SafePath.at(path.parent) / path.name
    safe_path.replace(safe_path.with_name(f"{path.name}{DAMAGED_SUFFIX}"))
    (path.parent / DONE).unlink(missing_ok=True)


def _explain_missing(folder: AnyPath, case: str) -> dict[str, str]:
    damaged = any((folder / f"{case}{suffix}{DAMAGED_SUFFIX}").exists() for suffix in SUFFIXES)
    unfinished_reason = (
        "its raw file was damaged and moved aside" if damaged else read_attempts(folder).summary
    )
    status, reason = read_marker(folder, case) or (UNFINISHED, unfinished_reason)
    return {"status": status, "reason": reason}


def _list_planned(plan: Plan, batch: Batch) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the id of each case and point of a batch, its columns, and its extent: the nodes and
    leaves that it uses.

    The column `name` has the probe of a case, or the operation of a point.
    """
    common = {
        "batch": batch.name,
        "platform": batch.platform,
        "simulated": plan.platforms[batch.platform].simulated,
    }
    for case in batch.cases:
        columns = {
            "kind": "probe",
            "name": case.probe,
            "layout": case.layout,
            "pair": case.pair,
            "ranks": case.ranks,
        }
        columns |= {"where": format_nodes(case.where)} if case.where else {}
        yield case.id, {**common, **columns, **case.settings}, {"nodes": count_case_nodes(case)}
    for point in batch.points:
        columns = {
            "kind": "point",
            "name": point.operation,
            "alternative": point.alternative,
            "layout": point.layout,
        }
        columns |= {"ranks": point.ranks, "bytes": point.bytes} | (
            {"waves": point.waves} if point.waves > 1 else {}
        )
        yield (
            point.id,
            {**common, **columns},
            {"nodes": point.nodes, "leaves": point.leaves or None},
        )


def summarize_raw(observations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each case: the distribution of its samples, their number, and why sampling
    stopped."""
    rows = []
    for case, group in iterate_cases(observations):
        first = {name: column[0] for name, column in group.items()}
        summary = summarize_case(group)
        settings = {
            name: value
            for name, value in first.items()
            if name not in NOT_SETTINGS and not _is_blank(value)
        }
        valid = group["seconds"][group["valid"]] if summary["samples"] else np.array([np.nan])
        rows.append(
            {name: first[name] for name in CASE_COLUMNS if name in first}
            | {
                "id": case,
                "settings": " ".join(
                    f"{name}={_make_whole(value)}" for name, value in settings.items()
                ),
            }
            | {
                "min": valid.min(),
                "mean": valid.mean(),
                "p95": np.percentile(valid, 95),
                "max": valid.max(),
            }
            | {"raw": make_raw_file_path(first["batch"], case, summary["samples"] > 0), **summary}
        )
    table = pd.DataFrame(rows, columns=list_columns(SUMMARY))
    return table.drop(
        columns=[name for name in ("cpu", "computation", "setting") if table[name].isna().all()]
    )


def iterate_cases(observations: pd.DataFrame) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yield the id and the columns of the samples of each case; samples of different settings are
    separate cases."""
    many_settings = "setting" in observations and observations["setting"].nunique() > 1
    groups = observations.groupby(["id", "setting"] if many_settings else ["id"], sort=False)
    numbers = groups.ngroup().to_numpy()
    order = np.argsort(numbers, kind="stable")
    columns = {name: observations[name].to_numpy()[order] for name in observations}
    ends = [*(np.flatnonzero(np.diff(numbers[order])) + 1).tolist(), len(order)]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if start < end:
            yield (
                columns["id"][start],
                {name: column[start:end] for name, column in columns.items()},
            )


def summarize_case(samples: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the median of the valid samples of one case with its confidence interval, and the
    counts behind it."""
    valid = samples["valid"].astype(bool)
    passes = samples["pass"][valid]
    median, low, high = compute_median_interval(samples["seconds"][valid], passes)
    return {
        "median": median,
        "low": low,
        "high": high,
        "samples": len(passes),
        "invalid": len(valid) - len(passes),
        "stop": find_worst_stop(set(samples["stop"])),
        "skew": _compute_median(samples["skew"]),
        "passes": len(np.unique(passes)),
        **{
            name: _compute_median(samples[name][valid])
            for name in OPTIONAL_COLUMNS[1:]
            if name in samples
        },
    }


def _compute_median(values: np.ndarray) -> float:
    """Return the median of the values that are known."""
    finite = values[~np.isnan(values)]
    return float(np.median(finite)) if len(finite) else np.nan


def _is_blank(value: object) -> bool:
    return value == "" or value is None or (isinstance(value, float) and np.isnan(value))


def _make_whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value == int(value) else value
