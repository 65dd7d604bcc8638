"""The MPI default, predicted from its own measured times alone (`MpiDefault`).

Nothing is assumed about the algorithms of the library. The prediction is

    T(p, m) = law(p, m) · exp(correction)

for each branch: an operation within one node or between nodes, with or without payload. The law is
a sum of TERMS with coefficients ≥ 0 over p ranks and m bytes. The correction is that of the
residual model (`predictions/residual_model.py`) with the covariance of
`predictions/growth_scales.py`, which also has the prediction interval.

A parameter set of the model `library` stores all of it. `fits/mpi_default_fits.py` fits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.models import Array
from commodel.parameters import ParameterSet
from commodel.patterns.default_algorithms import find_default_algorithm
from commodel.patterns.operations import has_size
from commodel.predictions.interval_basis import (
    NEGLIGIBLE_DOUBLINGS,
    IntervalBasis,
    format_doublings,
    measure_ranks_beyond,
    measure_size_beyond,
)
from commodel.predictions.places import Places, find_operation_class, name_placement
from commodel.predictions.predictions import Prediction
from commodel.predictions.residual_model import ResidualModel
from commodel.predictions.stored_residuals import load_residuals
from commodel.predictions.validity import VALID, Validity, ValidityKind
from commodel.records import LIBRARY, Point, Statistic
from commodel.units import format_bytes

# The terms of the law and the units of their coefficients: p ranks, m bytes, log to base 2.
TERMS = {
    "1": "s",
    "log p": "s",
    "p": "s",
    "p log p": "s",
    "m": "s/B",
    "m log p": "s/B",
    "m p": "s/B",
    "m p log p": "s/B",
}
MIN_LAW_SECONDS = 1e-12  # seconds; a law without terms would have no logarithm
WIDE = 4.0  # high over low of an interval, from which on a note says why it is wide
NO_PAYLOAD = " without payload"
# keys of the provenance of a set
PER_NODE_KEY = "ranks_per_node"  # of most points between nodes
BEYOND_KEY = "beyond"  # errors at left-out larger numbers of ranks
SETTING_KEY = "setting"
MAX_NAMED = 4  # algorithms in a note


@dataclass(frozen=True, eq=False)
class MpiDefault:
    """The laws and the residual model of the MPI default on one platform."""

    laws: Mapping[str, Array]  # coefficients of TERMS, by branch
    residuals: ResidualModel
    per_node: int  # ranks on a node in most measurements between nodes
    # by branch: ranks that were predicted from fewer ones, and the factor by which their times
    # differ from that, in median and at most
    beyond: Mapping[str, Sequence[float]]
    # of the measurements: begins with the MPI library, such as `Open MPI 5.0.3`, if that is known
    setting: str = ""

    @classmethod
    def of_set(cls, parameters: ParameterSet) -> MpiDefault:
        """Return the model that a parameter set stores."""
        if parameters.residuals is None:
            raise UserError(
                f"the set of model '{LIBRARY}' has no residuals, wanted a fit to a table"
            )
        laws: dict[str, Array] = {}
        for name, estimate in parameters.values.items():
            branch, _, term = name.rpartition(": ")
            if term not in TERMS:
                raise UserError(f"model {LIBRARY}, value '{name}': {suggest_name(term, TERMS)}")
            if estimate.unit != TERMS[term] or estimate.value < 0:
                raise UserError(
                    f"model {LIBRARY}, {name}: found {estimate.value:g} {estimate.unit}, "
                    f"wanted a number of at least 0 in {TERMS[term]}"
                )
            coefficients = laws.setdefault(branch, np.zeros(len(TERMS)))
            coefficients[list(TERMS).index(term)] = estimate.value
        per_node = parameters.provenance.get(PER_NODE_KEY, 1)
        if not isinstance(per_node, int) or per_node < 1:
            raise UserError(
                f"model {LIBRARY}, provenance.{PER_NODE_KEY}: found '{per_node}', wanted a number above 0"
            )
        beyond = parameters.provenance.get(BEYOND_KEY, {})
        if not isinstance(beyond, Mapping) or not all(map(_is_extrapolation, beyond.values())):
            raise UserError(
                f"model {LIBRARY}, provenance.{BEYOND_KEY}: wanted three numbers for each branch"
            )
        setting = str(parameters.provenance.get(SETTING_KEY, ""))
        return cls(laws, load_residuals(parameters.residuals), per_node, beyond, setting)

    def find_statistic(self, point: Point) -> Statistic:
        """Return the statistic to predict at a point: its own if that was measured, else another
        one that was."""
        for statistic in (point.statistic, *Statistic):
            if name_branch(replace(point, statistic=statistic)) in self.laws:
                return statistic
        return point.statistic

    def explain_missing(self, point: Point) -> str:
        """Return why a point has no prediction; empty if it has one."""
        branch = name_branch(point)
        return "" if branch in self.laws else f"no time of the MPI default, {branch}"

    def predict(self, points: Sequence[Point]) -> list[Prediction]:
        """Return the prediction of each point; without a value where its branch has none."""
        predicted = [point for point in points if not self.explain_missing(point)]
        by_point = dict(zip(predicted, self._predict(predicted), strict=True)) if predicted else {}
        return [by_point.get(point) or self._refuse(point) for point in points]

    def _predict(self, points: Sequence[Point]) -> list[Prediction]:
        places = locate_defaults(points)
        logs, half_width = self.residuals.predict_singly(places)
        seconds = evaluate_laws(self.laws, points) * np.exp(logs)
        measured = self.residuals.residuals.places
        ranks_beyond = measure_ranks_beyond(measured, places)
        sizes_beyond = measure_size_beyond(measured, places)
        columns = zip(
            points,
            seconds.tolist(),
            half_width.tolist(),
            self.residuals.find_bases(places),
            ranks_beyond.tolist(),
            sizes_beyond.tolist(),
            strict=True,
        )
        return [
            Prediction(
                model=LIBRARY,
                point=point,
                seconds=time,
                low=time * float(np.exp(-width)),
                high=time * float(np.exp(width)),
                validity=_assess_range(ranks, sizes),
                basis=basis,
            )
            for point, time, width, basis, ranks, sizes in columns
        ]

    def _refuse(self, point: Point) -> Prediction:
        nothing = float("nan")
        validity = Validity(ValidityKind.NO_PREDICTION, self.explain_missing(point))
        return Prediction(LIBRARY, point, nothing, nothing, nothing, validity, IntervalBasis())


def _is_extrapolation(stored: object) -> bool:
    """Return whether a stored value has a number of ranks and two factors."""
    if not isinstance(stored, list | tuple) or len(stored) != 3:
        return False
    return all(isinstance(number, int | float) for number in stored)


def _assess_range(ranks_beyond: float, sizes_beyond: float) -> Validity:
    """Return whether a point lies beyond the measured ranks or sizes."""
    amounts = {"the ranks": ranks_beyond, "the size": sizes_beyond}
    texts = [
        f"{format_doublings(doublings)} of {name}"
        for name, doublings in amounts.items()
        if doublings > NEGLIGIBLE_DOUBLINGS
    ]
    if not texts:
        return VALID
    return Validity(ValidityKind.EXTRAPOLATED, f"{' and '.join(texts)} beyond the measured times")


def name_branch(point: Point) -> str:
    """Return the name of the branch that a point belongs to: `allreduce between nodes`."""
    operation = find_operation_class(point.operation, point.waves, point.statistic)
    lacks_payload = has_size(point.operation) and not point.bytes
    return f"{operation} {name_placement(point.nodes)}{NO_PAYLOAD if lacks_payload else ''}"


def locate_defaults(points: Sequence[Point]) -> Places:
    """Return the places of points of the MPI default. Branches take the place of operations, so
    that their residuals are independent."""
    branches = np.array([name_branch(point) for point in points], dtype=str)
    # The laws are those of one setting.
    return replace(Places.of_points(points, setting=""), operation=branches)


def tabulate_terms(points: Sequence[Point]) -> Array:
    """Return the values of TERMS at each point: (points, terms)."""
    amounts = np.array(
        [(point.leaves + 1 if point.leaves else point.ranks, point.bytes) for point in points]
    )
    ranks, size = amounts.astype(float).T
    logs = np.log2(ranks)
    of_ranks = np.stack([np.ones(len(ranks)), logs, ranks, ranks * logs], axis=1)
    return np.hstack([of_ranks, size[:, None] * of_ranks])


def evaluate_laws(laws: Mapping[str, Array], points: Sequence[Point]) -> Array:
    """Return the seconds of the law of each point's branch."""
    coefficients = np.array([laws[name_branch(point)] for point in points])
    return np.maximum((tabulate_terms(points) * coefficients).sum(axis=1), MIN_LAW_SECONDS)


def describe_algorithms(setting: str, points: Sequence[Point]) -> list[str]:
    """Return a note on the algorithms that the MPI library of a setting runs by its default rules;
    none if they are unknown."""
    found = [(point, find_default_algorithm(setting, point)) for point in points]
    named = [(point, algorithm) for point, algorithm in found if algorithm is not None]
    places: dict[str, list[Point]] = {}
    for point, algorithm in named:
        places.setdefault(algorithm.text, []).append(point)
    if len(places) == 1 and len(named) == len(points):
        return list(places)
    notes = []
    for text, of_text in list(places.items())[:MAX_NAMED]:
        workloads = [f"{point.ranks} ranks, {format_bytes(point.bytes)}" for point in of_text]
        more = f" and {len(workloads) - MAX_NAMED} more" if len(workloads) > MAX_NAMED else ""
        notes.append(f"{text} ({'; '.join(workloads[:MAX_NAMED])}{more})")
    others = len(places) - len(notes)
    return [*notes, f"{others} further algorithms by its rules"] if others else notes


def describe_widths(default: MpiDefault, predictions: Sequence[Prediction]) -> list[str]:
    """Return a note for each branch with a wide interval: why it is wide."""
    wide = [prediction for prediction in predictions if prediction.high > WIDE * prediction.low]
    branches = dict.fromkeys(name_branch(prediction.point) for prediction in wide)
    return [describe_width(default, branch) for branch in branches]


def describe_width(default: MpiDefault, branch: str) -> str:
    """Return why the intervals of a branch are wide."""
    places = default.residuals.residuals.places
    ranks = np.unique(places.ranks[places.operation == branch].round(6))
    counts = f"{len(ranks)} number{'' if len(ranks) == 1 else 's'} of ranks"
    if branch not in default.beyond:
        return f"WIDE INTERVAL: {branch}, {counts} measured, so that their effect is unknown"
    count, median, largest = default.beyond[branch]
    return (
        f"WIDE INTERVAL: {branch}, {counts} measured; {count:g} ranks, predicted from fewer, are "
        f"off by a factor of {median:g} in median and {largest:g} at most"
    )
