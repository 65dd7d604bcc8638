"""Predictions of the MPI default beside those of models: which patterns ask for it, its points, and
notes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from commodel.errors import UserError
from commodel.parameters import ParameterSet
from commodel.patterns.operations import has_size
from commodel.predictions.mpi_default import MpiDefault, describe_algorithms, describe_widths
from commodel.predictions.predictions import Prediction
from commodel.records import LIBRARY, Point, Statistic


@dataclass(frozen=True)
class DefaultRequest:
    """Whether the names of a pattern ask for the MPI default."""

    is_named: bool  # by `algorithm`
    is_alone: bool  # no other alternative is named
    is_possible: bool  # no other alternative is named, or the MPI default is

    @classmethod
    def of(cls, pattern: Mapping[str, Any]) -> DefaultRequest:
        names = set(pattern["algorithm"])
        is_named = LIBRARY in names
        names_others = bool(names - {LIBRARY} or pattern["topology"])
        return cls(is_named, is_named and not names_others, is_named or not names_others)

    def check(self, default: MpiDefault | None) -> None:
        """Raise an error if the MPI default is named and has no times."""
        if self.is_named and default is None:
            raise UserError(
                "found no times of the MPI default, wanted --params of a set that `commodel fit "
                "table` fitted to them, or a run that measured them",
                key="algorithm",
            )


def split_sets(sets: Sequence[ParameterSet]) -> tuple[list[ParameterSet], MpiDefault | None]:
    """Return the sets of models of algorithms, and the MPI default that another set stores."""
    of_default = [parameters for parameters in sets if parameters.model == LIBRARY]
    if len(of_default) > 1:
        raise UserError(f"found {len(of_default)} sets of the MPI default, wanted one")
    others = [parameters for parameters in sets if parameters.model != LIBRARY]
    return others, MpiDefault.of_set(of_default[0]) if of_default else None


def complete_pattern(
    pattern: Mapping[str, Any], default: MpiDefault, has_platform: bool
) -> dict[str, Any]:
    """Return the names and amounts of the MPI default's points. Without a platform and a layout,
    nodes have as many ranks as those of the measured times."""
    layout = pattern["layout"] or (None if has_platform else f"block:{default.per_node}")
    return {**pattern, "algorithm": [LIBRARY], "topology": [], "layout": layout}


def predict_default(default: MpiDefault, points: Sequence[Point]) -> list[Prediction]:
    """Return the predictions of points of the MPI default: of their statistic, or of another one
    if only that was measured."""
    if points[0].bytes == 0 and has_size(points[0].operation):
        raise UserError("found 0 bytes, wanted at least 1 for the MPI default", key="bytes")
    stated = [replace(point, statistic=default.find_statistic(point)) for point in points]
    predictions = default.predict(stated)
    if all(prediction.seconds != prediction.seconds for prediction in predictions):
        known = ", ".join(default.laws)
        raise UserError(f"found {default.explain_missing(stated[0])}; there are times of {known}")
    return predictions


def describe_default(
    default: MpiDefault, predictions: Sequence[Prediction], layout: str | None, wanted: Statistic
) -> list[str]:
    """Return notes on predictions of the MPI default: what the library runs, its layout, its statistic, and why an
    interval is wide. `layout` is the one that nobody asked for."""
    points = [prediction.point for prediction in predictions]
    notes = describe_algorithms(default.setting, points)
    if layout:
        notes.append(f"layout {layout}: that of the measured times of the MPI default")
    for statistic in dict.fromkeys(prediction.point.statistic for prediction in predictions):
        if statistic is not wanted:
            notes.append(f"times of the MPI default are of statistic '{statistic}', as measured")
    return [*notes, *describe_widths(default, predictions)]
