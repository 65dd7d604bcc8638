"""The comparison as reports need it: types that do not depend on the CSV file, and values in the
shown units.

`prepare_comparison` returns the frame from which all sections are made.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from commodel.compare.comparison import has_schedule, is_library_default, name_streams
from commodel.files.tables import COMPARISON, add_default_columns, list_columns
from commodel.records import DEFAULT_LABEL, LIBRARY, RECOMMENDED
from commodel.reports.elements import to_plain_value

FLAGS, WHOLE, TEXTS, NUMBERS = (list_columns(COMPARISON, kind) for kind in (bool, int, str, float))
PERCENTAGES = (
    "abs_error_median",
    "bias",
    "covered_share",
    "coverage",
    "right",
    "tied",
    "regret_mean",
    "regret_max",
)


HELD_OUT_COLUMNS = [
    "platform",
    "simulated",
    "operation",
    "alternative",
    "kind",
    "layout",
    "size",
    "bytes",
    "fan_in",
    "model",
    "point",
    "measured",
    "seconds",
    "low",
    "high",
    "mu",
    "relative_error",
    "covered",
    "basis",
    "validity",
    "held_out",
]


def prepare_comparison(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison with the types of its columns, sorted, real machines first, and with
    the labels of reports.

    `size` is that of the workload, with its waves and setting; `kind` that of the alternative;
    `alternative_label` a name of the alternative that is unique in its workload. If the
    alternatives differ in layout, `alternative_label` names the layout and `placement` the nodes;
    else `placement` is the layout."""
    frame = name_streams(add_default_columns(comparison, COMPARISON)).reset_index(drop=True)
    for key in TEXTS:
        frame[key] = _make_texts_safe(frame[key])
    for key in (key for key in FLAGS if frame[key].dtype != bool):
        frame[key] = frame[key].astype(str).str.strip().str.lower().isin(("true", "1", "1.0"))
    for key in NUMBERS:
        frame[key] = pd.to_numeric(frame[key], errors="coerce").astype(float)
    for key in (key for key in WHOLE if frame[key].dtype != np.int64):
        frame[key] = (
            pd.to_numeric(frame[key], errors="coerce").astype(float).fillna(0).astype(np.int64)
        )
    frame["size"] = _label_rows(frame, ["leaves", "ranks", "waves", "setting"], _label_size)
    kinds = np.where(is_library_default(frame), 2, frame["topology"] != "")
    frame["kind"] = pd.Series(
        np.array(["algorithm", "topology", LIBRARY], dtype=object)[kinds], dtype=object
    )
    workload = ["platform", "operation", "size", "node_usage"]
    frame["several"] = frame.groupby(workload)["layout"].transform("nunique") > 1
    frame["placement"] = _label_rows(
        frame,
        ["layout", "node_usage", "several"],
        lambda layout, usage, several: f"any layout, {usage}" if several else layout,
    )
    frame["alternative_label"] = _label_rows(
        frame,
        ["alternative", "kind", "layout", "several"],
        lambda alternative, kind, layout, several: (
            (DEFAULT_LABEL if kind == LIBRARY else alternative) + (f", {layout}" if several else "")
        ),
    )
    order = [
        "simulated",
        "platform",
        "operation",
        "placement",
        "ranks",
        "bytes",
        "alternative_label",
        "model",
    ]
    sorted_index = frame[order].sort_values(order, kind="stable").index
    columns = {
        key: frame[key].take(sorted_index).reset_index(drop=True)
        for key in frame.columns.drop("several")
    }
    # column by column, since all columns at once need twice the memory
    prepared = pd.DataFrame(columns, copy=False)
    prepared.columns = pd.Index(prepared.columns, dtype=object)
    return prepared


def _make_texts_safe(column: pd.Series) -> pd.Series:
    """Return the column as texts that are safe to show. Each distinct text is converted once."""
    # -1: blank; several times faster than Arrow here
    codes, texts = pd.factorize(column.astype(object))
    safe = [*(to_plain_value(text) or "" for text in texts), ""]
    if column.dtype == object and safe[:-1] == list(texts) and (codes >= 0).all():
        return column
    return pd.Series(np.array(safe, dtype=object)[codes], column.index, dtype=object)


def _label_rows(frame: pd.DataFrame, keys: list[str], name: Callable[..., str]) -> pd.Series:
    """Return a text for each row, made once for all rows that have the same values in these
    columns."""
    rows = frame[keys].drop_duplicates().itertuples(index=False)
    texts = np.array([to_plain_value(name(*values)) for values in rows], dtype=object)
    return pd.Series(texts[frame.groupby(keys, sort=False).ngroup()], frame.index, dtype=object)


def _label_size(leaves: int, ranks: int, waves: int, setting: str) -> str:
    over = f"{leaves} leaves" if leaves else f"{ranks} ranks"
    over = over if waves == 1 else f"{over}, {waves} waves"
    return f"{over}, {setting}" if setting else over


def select_held_out(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions at held-out points, by which models are judged. Large comparisons take
    much memory, so the selection is made once and has only the columns that judging needs."""
    return frame.loc[frame["held_out"] & has_schedule(frame), HELD_OUT_COLUMNS]


def scale_to_shown_units(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the values in the units of reports: seconds as µs, shares as %."""
    factors = {field.name: field.shown_unit[1] for field in COMPARISON if field.type is float}
    shown = frame.copy(deep=False)  # unchanged columns are shared
    for key, factor in (factors | dict.fromkeys(PERCENTAGES, 100.0)).items():
        if key in shown and factor != 1:
            shown[key] = shown[key].astype(float) * factor
    return shown


def list_models(frame: pd.DataFrame) -> list[str]:
    """Return the models in the frame, the recommended prediction first. A point that no model was
    to predict has an empty name."""
    return sorted(
        (name for name in frame["model"].unique() if name),
        key=lambda name: (name != RECOMMENDED, name),
    )


def list_leaves(frame: pd.DataFrame) -> pd.Series:
    """Return the numbers of leaves for tables: blank for an algorithm."""
    return frame["leaves"].astype(object).where(frame["leaves"] > 0, None)
