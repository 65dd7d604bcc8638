"""Fits of a model to probes: `fit` makes the parameter set of a model on a platform from the table
of observations.

- Distance classes: a model is fitted separately to the probes in each distance class. A class
  without values of its own uses those of the first nodes. If nodes have several types, the first
  nodes are of the first type. A model with values by type has no values by class, since not all
  pairs of types were probed in each class.
- Single-message ratios: the measured and the predicted round trip at each size and distance class
  are stored.
- Values that the data do not determine are marked.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from commodel.errors import UserError, describe_error, make_printable, suggest_name
from commodel.fits.validity_checks import (
    MIXTURE_PROBE,
    check_contention,
    find_unequal_classes,
    find_unequal_types,
    list_nodes,
    make_case_schedule,
    measure_heterogeneity,
    measure_left_out_error,
)
from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.shared_links import LINK_FACTORS
from commodel.models.evaluation.values import Values, rank_types
from commodel.models.families import Family, find_family, find_unit
from commodel.models.fitting.channels import find_longest_vectors
from commodel.models.fitting.memory import find_memory_settings
from commodel.models.fitting.observed import CaseSamples, Fitted, Observed, make_estimate
from commodel.models.keys import PART_PATTERN, add_class, parse_key
from commodel.models.probes import BETWEEN, EVERYWHERE, LOCAL_WORK_PROBES, find_probe
from commodel.models.probes.mixture import TURN_WITHIN
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model
from commodel.records import Plan, PlannedPlatform

# probes that measure round trips; the first one covers most node pairs
ROUND_TRIPS = ("distance", "pingpong", "prtt")
# settings of prtt at which a round trip is a single message each way
SINGLE_MESSAGE_SETTINGS = {"n": 1, "delay": 0, "late": 0}
FIRST_NODES = ""  # label of cases on the first nodes
# by probe: the distance class of each case; None: it counts for all classes
Labels = Mapping[str, list[str | None]]


def split_by_class(family: Family, evidence: Observed) -> dict[str, Observed]:
    """Return the samples of the first nodes, and of each distance class in which all class-specific
    probes of the model were run."""
    if not evidence.levels:
        return {FIRST_NODES: evidence}
    levels = Hierarchy.of(evidence.levels)
    labels = {name: _label_cases(levels, name, evidence) for name in evidence.probes}
    needed = [
        labels[name]
        for name in family.probes
        if find_probe(name).classes and evidence.probes.get(name)
    ]
    classes = [FIRST_NODES]
    if family.by_class and needed and not (evidence.types and family.by_type):
        possible = [name for name in levels.names if not PART_PATTERN.fullmatch(name)]
        possible = [name for name in possible if name != NODE or family.by_class == EVERYWHERE]
        classes += [name for name in possible if all(name in of_probe for of_probe in needed)]
    return {name: _select_class(evidence, labels, name) for name in classes}


def _select_class(evidence: Observed, labels: Labels, name: str) -> Observed:
    probes = {
        probe: [
            case for case, label in zip(cases, labels[probe], strict=True) if label in (name, None)
        ]
        for probe, cases in evidence.probes.items()
    }
    return Observed(
        probes,
        evidence.seed,
        evidence.types,
        levels=evidence.levels,
        simulated=evidence.simulated,
    )


def _find_first_distance(levels: Hierarchy) -> int:
    """Return the distance class of the first two nodes, or that of a single node to itself."""
    return int(levels.distance(0, min(1, levels.columns.shape[1] - 1)))


def _label_cases(levels: Hierarchy, name: str, evidence: Observed) -> list[str | None]:
    """Return the distance class of each case. Rank 0 sends to all others, or to those on another
    node."""
    classes, first = find_probe(name).classes, _find_first_distance(levels)
    labels: list[str | None] = []
    # these are run once for each type, or pair of types
    by_type = bool(evidence.types) and name not in ROUND_TRIPS
    for case in evidence.probes[name]:
        if not classes or by_type:
            labels.append(None)
            continue
        nodes_text = str(case.settings["where"])
        nodes = list_nodes(str(case.settings["layout"]), int(case.settings["ranks"]), nodes_text)
        distances = np.unique(levels.distance(nodes[0], nodes[1:])).tolist()
        if classes == BETWEEN and not any(distances):
            labels.append(None)
        else:
            labels.append(
                levels.names[distances[-1]]
                if nodes_text and first not in distances
                else FIRST_NODES
            )
    return labels


def add_class_values(
    family: Family, parameters: ParameterSet, by_class: Mapping[str, ParameterSet]
) -> ParameterSet:
    """Return the set with the values of other distance classes added if they differ."""
    values, draws, forms = dict(parameters.values), dict(parameters.draws), dict(parameters.forms)
    curves = list(parameters.curves)
    first_functions = _group_by_function(family, parameters)
    for name, of_class in by_class.items():
        for function, texts in _group_by_function(family, of_class).items():
            if texts == first_functions.get(function) and all(
                _find_value(of_class, text) == _find_value(parameters, text) for text in texts
            ):
                continue
            is_function = bool(family.by_name[parse_key(texts[0]).parameter].argument)
            if is_function:
                forms[add_class(function, name, False)] = of_class.forms.get(function, "constant")
            values |= {add_class(text, name, is_function): of_class.values[text] for text in texts}
            draws |= {
                add_class(text, name, is_function): of_class.draws[text]
                for text in texts
                if text in of_class.draws
            }
        curves += [replace(curve, title=f"{curve.title}, {name}") for curve in of_class.curves]
    parameters = parameters.with_settings(classes=list(by_class)) if by_class else parameters
    return replace(parameters, values=values, draws=draws, forms=forms, curves=tuple(curves))


def _group_by_function(family: Family, parameters: ParameterSet) -> dict[str, list[str]]:
    """Return the names of values by function. A parameter that is a number forms a group of its
    own."""
    entries: dict[str, list[str]] = {}
    for text in parameters.values:
        function = (
            parse_key(text).function if family.by_name[parse_key(text).parameter].argument else text
        )
        entries.setdefault(function, []).append(text)
    return entries


def _find_value(parameters: ParameterSet, text: str) -> tuple[float, Sequence[float] | None]:
    return parameters.values[text].value, parameters.draws.get(text)


def compare_distance_classes(evidence: Observed) -> dict[str, list[float]]:
    """Return, for each distance class, the smallest and the largest ratio of its round trips to
    those of the first two nodes, over all sizes."""
    levels = Hierarchy.of(evidence.levels)
    first = levels.names[_find_first_distance(levels)]
    for probe_name in ROUND_TRIPS:
        times: dict[str, dict[object, list[float]]] = {}
        cases = evidence.probes.get(probe_name, ())
        for case, label in zip(
            cases, _label_cases(levels, probe_name, evidence) if cases else (), strict=True
        ):
            if all(
                case.settings.get(name, wanted) == wanted
                for name, wanted in SINGLE_MESSAGE_SETTINGS.items()
            ):
                name = str(case.settings.get("apart", label or first))
                times.setdefault(name, {}).setdefault(case.settings["bytes"], []).append(
                    float(np.median(case.seconds))
                )
        if len(times) > 1 and first in times:
            first_times = {size: float(np.mean(samples)) for size, samples in times[first].items()}
            return {
                name: _find_ratio_range(class_times, first_times)
                for name, class_times in times.items()
                if class_times.keys() & first_times.keys()
            }
    return {}


def _find_ratio_range(
    times: Mapping[object, list[float]], first_times: Mapping[object, float]
) -> list[float]:
    ratios = [
        seconds / first_times[size]
        for size, samples in times.items()
        if size in first_times
        for seconds in samples
    ]
    return [float(min(ratios)), float(max(ratios))]


def compare_round_trips(
    family: Family, parameters: ParameterSet, evidence: Observed
) -> dict[str, dict[str, list[float]]]:
    """Return measured and predicted round trips by distance class, as parameter sets store them.
    They are of the probe that ran on most pairs of nodes; within a node they may be of probe
    `mixture`. Without a prediction the result is empty."""
    if not parameters.values:
        return {}
    model = Model.of(family, Values.of(parameters))
    probe_name = next((name for name in ROUND_TRIPS if evidence.probes.get(name)), "")
    times = _collect_round_trips(model, probe_name, evidence.probes.get(probe_name, ()), evidence)
    if NODE not in times:
        within = [
            case
            for case in evidence.probes.get(MIXTURE_PROBE, ())
            if int(case.settings["turn"]) == TURN_WITHIN
        ]
        times |= _collect_round_trips(model, MIXTURE_PROBE, within, evidence)
    return {name: _average_by_size(by_size) for name, by_size in times.items()}


def _collect_round_trips(
    model: Model, probe: str, cases: Sequence[CaseSamples], evidence: Observed
) -> dict[str, dict[int, list[Array]]]:
    """Return ln(measured) and ln(predicted) of the round trips of each case, by distance class and
    size."""
    times: dict[str, dict[int, list[Array]]] = defaultdict(lambda: defaultdict(list))
    levels = Hierarchy.of(evidence.levels)
    for case in cases:
        pattern = make_case_schedule(probe, case.settings, evidence.types)
        if pattern is None or not len(case.seconds):
            continue
        if not model.family.by_type and rank_types(pattern.node, evidence.types).any():
            continue  # a rank is on another node type than the first, which the model does not have
        try:
            trip = np.array([np.median(case.seconds), np.ravel(model.cost(pattern))[0]]) / (
                pattern.messages / 2
            )
        except UserError:  # the model has no values for this distance
            continue
        if trip.min() > 0:
            (distance,) = levels.apart(pattern.node, pattern.src, pattern.dst)
            times[levels.names[distance]][int(case.settings["bytes"])].append(np.log(trip))
    return dict(times)


def _average_by_size(by_size: Mapping[int, list[Array]]) -> dict[str, list[float]]:
    sizes = sorted(by_size)
    measured, predicted = np.exp([np.mean(by_size[size], axis=0) for size in sizes]).T
    rounded = {"measured": measured, "predicted": predicted}
    columns: dict[str, list[float]] = {"bytes": list(sizes)}
    return {
        **columns,
        **{name: [float(f"{time:.6g}") for time in column] for name, column in rounded.items()},
    }


ROUNDING_SECONDS = 1e-18  # seconds, or seconds per byte: rounding errors of exact simulations
# half-width of an interval relative to the value, from which on it is not identifiable
MAX_RELATIVE_HALF_WIDTH = 0.5


def collect_observed(
    observations: pd.DataFrame, platform: str, seed: int, planned: PlannedPlatform
) -> Observed:
    """Return the samples of the probes on a platform. Matrix points are held out from each fit."""
    rows = observations[
        (observations["kind"] == "probe")
        & (observations["platform"] == platform)
        & observations["valid"]
    ]
    if "setting" in rows and len(settings_found := sorted(rows["setting"].unique())) > 1:
        names = " and ".join(f"'{make_printable(name, 80)}'" for name in settings_found[:2])
        raise UserError(
            f"observations: platform '{platform}' has probes of the settings {names}, wanted one setting"
        )
    probes: dict[str, list[CaseSamples]] = {}
    for (name, case), group in rows.groupby(["name", "id"], sort=False):
        first = group.iloc[0]
        columns = (*find_probe(name).columns, "ranks", "layout", "pair")
        for column in columns:
            if pd.isna(first.get(column)):
                raise UserError(
                    f"observations: case {make_printable(case, 60)} of probe {name}: found no {column}, wanted one"
                )
        settings = {column: _read_setting(first[column]) for column in columns}
        settings["where"] = str(first.get("where") or "")
        counts = (
            group["count"].to_numpy() if "count" in group and group["count"].notna().all() else None
        )
        samples = CaseSamples(
            settings, group["seconds"].to_numpy(), group["pass"].to_numpy(), counts
        )
        probes.setdefault(name, []).append(samples)
    return Observed(probes, seed, planned.types, levels=planned.levels, simulated=planned.simulated)


def _read_setting(value: str | float) -> str | int:
    return value if isinstance(value, str) else int(value)


def fit(plan: Plan, observations: pd.DataFrame, name: str, platform: str) -> ParameterSet:
    """Fit a model to the probes of a platform."""
    find_family(name)
    return fit_to_evidence(plan, collect_evidence(plan, observations, platform), name, platform)


def collect_evidence(plan: Plan, observations: pd.DataFrame, platform: str) -> Observed:
    """Return the samples of the probes on a platform of a plan."""
    if platform not in plan.platforms:
        raise UserError(
            f"no platform '{platform}' in the plan; {suggest_name(platform, plan.platforms)}"
        )
    return collect_observed(observations, platform, plan.seed, plan.platforms[platform])


def fit_to_evidence(plan: Plan, evidence: Observed, name: str, platform: str) -> ParameterSet:
    """Fit a model to the samples of probes. If the fit fails for any reason, return a set without
    values, with the reason, so that the other models are reported."""
    family, planned = find_family(name), plan.platforms[platform]
    try:
        parameters = fit_set(family, evidence)
        _require_finite(parameters)
    except Exception as error:
        missing = dict.fromkeys(family.by_name, describe_error(error))
        parameters = ParameterSet(name, platform, "", {}, missing=missing)
    return replace(
        parameters,
        platform=platform,
        source=f"{'fitted' if parameters.values else 'not fitted'} from the probes of experiment {plan.experiment}",
        simulated=planned.simulated,
        provenance={
            "experiment_digest": plan.digest,
            "platform_digest": planned.digest,
            "seed": plan.seed,
        },
    )


def _require_finite(parameters: ParameterSet) -> None:
    """Refuse values that are no numbers, which no reader of the set's file would accept."""
    for name, estimate in parameters.values.items():
        numbers = (estimate.value, estimate.low, estimate.high, *parameters.draws.get(name, ()))
        if not np.isfinite(numbers).all():
            raise ArithmeticError(
                f"{name} is {estimate.value:.4g}, from {estimate.low:.4g} to {estimate.high:.4g}"
            )


def fit_set(family: Family, evidence: Observed) -> ParameterSet:
    """Return the parameter set of a model from its probes. On a network with levels it has values
    for each distance class."""
    by_class = split_by_class(family, evidence)
    first = by_class.pop(FIRST_NODES)
    parameters = make_parameter_set(family, family.fit(first))
    vectors = (
        find_longest_vectors(evidence, copies="copy" in parameters.forms)
        if "work" in family.probes
        else {}
    )
    unequal = find_unequal_classes(family, evidence, parameters)
    parameters = parameters.with_settings(heterogeneity_by_class=unequal) if unequal else parameters
    parameters = replace(
        parameters, left_out=measure_left_out_error(family, first), vectors=vectors
    )
    if not evidence.levels:
        ratio = measure_heterogeneity(evidence, parameters)
        heterogeneity: dict[str, Any] = {"heterogeneity": round(ratio, 3)} if ratio > 1 else {}
        by_node = NODE in parameters.settings.get(LINK_FACTORS, {})
        types = {} if family.by_type or by_node else find_unequal_types(evidence)
        if types:
            heterogeneity |= {"types": dict(evidence.types), "heterogeneity_by_types": types}
        probed = list_probed_classes(family, first)
        without_mpi = {*family.probes_without_mpi} - LOCAL_WORK_PROBES
        heterogeneity |= {"probed_classes": probed} if probed or not without_mpi else {}
        return _add_checks(family, parameters.with_settings(**heterogeneity), evidence)
    classes = {}
    for name, class_evidence in by_class.items():
        with suppress(UserError):  # predictions of messages in this class report the missing values
            classes[name] = make_parameter_set(family, family.fit(class_evidence))
    parameters = add_class_values(family, parameters, classes)
    probed_classes = {*list_probed_classes(family, first), *classes}
    names = [name for name in Hierarchy.of(evidence.levels).names if name in probed_classes]
    parameters = parameters.with_settings(**evidence.placement, probed_classes=names)
    ratios = {} if family.has_classes else compare_distance_classes(evidence)
    if ratios:
        parameters = parameters.with_settings(distance_ratios=ratios)
    return _add_checks(family, parameters, evidence)


def _add_checks(family: Family, parameters: ParameterSet, evidence: Observed) -> ParameterSet:
    """Return the set with its errors for single messages and under contention, and with the
    bandwidth of a node's memory."""
    for name, find_errors in (
        ("single_messages", compare_round_trips),
        ("contention", check_contention),
    ):
        errors = find_errors(family, parameters, evidence)
        if errors:
            parameters = parameters.with_settings(**{name: errors})
    return parameters.with_settings(**find_memory_settings(evidence))


def list_probed_classes(family: Family, evidence: Observed) -> list[str]:
    """Return the distance classes of the messages of the model's probes."""
    levels = Hierarchy.of(evidence.levels)
    distances: set[int] = set()
    for name in set(family.probes) - LOCAL_WORK_PROBES:
        settings = [case.settings for case in evidence.probes.get(name, ())]
        for layout, ranks, where in {
            (case["layout"], case["ranks"], case["where"]) for case in settings
        }:
            distances.update(levels.classes(list_nodes(str(layout), int(ranks), str(where))))
    return [levels.names[distance] for distance in sorted(distances)]


def make_parameter_set(family: Family, fitted: Fitted) -> ParameterSet:
    """Return a parameter set from the draws of a fit: values with intervals, units and notes. The
    caller adds the provenance."""
    fitted = replace(
        fitted,
        values={
            key: np.where(np.abs(draws_of_value) < ROUNDING_SECONDS, 0.0, draws_of_value)
            for key, draws_of_value in fitted.values.items()
        },
    )
    estimated = {
        key: draws_of_value
        for key, draws_of_value in fitted.values.items()
        if not family.by_name[parse_key(key).parameter].random
    }
    has_draws = any(len(draws_of_value) > 1 for draws_of_value in estimated.values())
    indistinct = find_indistinct_values(estimated) if has_draws else {}
    unidentified = indistinct | dict(fitted.unidentified)
    values = {}
    for value, draws in fitted.values.items():
        name = parse_key(value).parameter
        reason = unidentified.get(value, unidentified.get(name, ""))
        note = "; ".join(
            text for text in (reason, fitted.notes.get(value, fitted.notes.get(name, ""))) if text
        )
        values[value] = make_estimate(
            draws,
            find_unit(family, value, fitted.forms),
            note,
            not reason,
            fitted.intervals.get(value),
        )
    return ParameterSet(
        model=family.name,
        platform="",
        source="",
        values=values,
        forms=fitted.forms,
        settings=fitted.settings,
        missing=fitted.missing,
        bytes_range=(float(fitted.bytes_range[0]), float(fitted.bytes_range[1])),
        residuals=fitted.residuals,
        curves=fitted.curves,
        draws={
            key: tuple(float(draw) for draw in draws[1:])
            for key, draws in fitted.values.items()
            if has_distinct_draws(draws)
        },
    )


def has_distinct_draws(draws: np.ndarray) -> bool:
    """Return whether a value has draws that differ from its estimate. In a simulation without noise
    it has none."""
    return bool(np.any(draws != draws[0]))


def find_indistinct_values(values: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return a note for each value that the data do not determine: its interval is as wide as the
    value. The value may be 0, or only determined together with another one."""
    notes = {}
    varying = {name: draws[1:] for name, draws in values.items() if np.std(draws[1:]) > 0}
    for name, draws in varying.items():
        low, high = np.percentile(draws, [2.5, 97.5])
        if high - low < 2 * MAX_RELATIVE_HALF_WIDTH * abs(values[name][0]):
            continue
        partners = {
            other: abs(np.corrcoef(draws, column)[0, 1])
            for other, column in varying.items()
            if other != name
        }
        partner = max(partners, key=lambda other: partners[other], default="")
        partner_text = (
            f", only together with {partner}" if partner and partners[partner] > 0.9 else ""
        )
        notes[name] = (
            f"not identifiable from these data{partner_text}: its interval is as wide as its value"
        )
    return notes
