"""Fits of a model to probes: `fit` makes the parameter set of a model on a platform from the table of observations.

- Distance classes: a model is fitted once to what its probes measured in each class of a network's levels. The values
  of the first nodes hold wherever no class has others. If nodes are of several types, these are nodes of the first
  type: a model with values by type has none by class, since not every pair of types was probed in each class.
- Single-message ratios: the time of a round trip at each size and distance is stored with its prediction.
- Values that the data do not determine are marked.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd

from commodel.errors import UserError, one_line, suggest
from commodel.fits.validity_checks import (
    MIXTURE,
    check_contention,
    find_unequal_classes,
    find_unequal_types,
    make_case_schedule,
    measure_left_out_error,
    measure_unevenness,
    nodes_of,
)
from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.shared_lines import LINK_FACTORS
from commodel.models.evaluation.values import Values, rank_types
from commodel.models.families import Family, family, unit
from commodel.models.fitting.channels import longest_vectors
from commodel.models.fitting.observed import CaseSamples, Fitted, Observed, estimate
from commodel.models.keys import PART, in_class, parse
from commodel.models.probes import BETWEEN, EVERYWHERE, LOCAL, probe
from commodel.models.probes.mixture import WITHIN
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.records import Plan, PlannedPlatform

ROUND_TRIPS = ("distance", "pingpong", "prtt")  # probes whose cases are such, the widest first
SINGLE_MESSAGE = {"n": 1, "delay": 0, "late": 0}  # settings of prtt at which a round trip is a single message each way
FIRST = ""  # the class of the first nodes
Labels = Mapping[str, list[str | None]]  # of every case of a probe: in which class it was run, None: in all


def split_by_class(entry: Family, evidence: Observed) -> dict[str, Observed]:
    """Return the evidence of the first nodes, and the evidence of each distance class in which all probes of the model
    that distinguish classes were run."""
    if not evidence.levels:
        return {FIRST: evidence}
    levels = Hierarchy.of(evidence.levels)
    labels = {name: _label_cases(levels, name, evidence) for name in evidence.probes}
    needed = [labels[name] for name in entry.probes if probe(name).classes and evidence.probes.get(name)]
    classes = [FIRST]
    if entry.by_class and needed and not (evidence.types and entry.by_type):
        possible = [name for name in levels.names if not PART.fullmatch(name)]
        possible = [name for name in possible if name != NODE or entry.by_class == EVERYWHERE]
        classes += [name for name in possible if all(name in of_probe for of_probe in needed)]
    return {name: _select_class(evidence, labels, name) for name in classes}


def _select_class(evidence: Observed, labels: Labels, name: str) -> Observed:
    probes = {
        probe: [case for case, own in zip(cases, labels[probe], strict=True) if own in (name, None)]
        for probe, cases in evidence.probes.items()
    }
    return Observed(probes, evidence.seed, evidence.types, levels=evidence.levels)


def _label_cases(levels: Hierarchy, name: str, evidence: Observed) -> list[str | None]:
    """Return the distance class of each case. Rank 0 sends to all others, or to those on another node."""
    classes, first, labels = probe(name).classes, int(levels.distance(0, min(1, levels.nodes - 1))), []
    by_type = bool(evidence.types) and name not in ROUND_TRIPS  # these are run once for each type, or pair of types
    for case in evidence.probes[name]:
        if not classes or by_type:
            labels.append(None)
            continue
        where = str(case.settings["where"])
        nodes = nodes_of(str(case.settings["layout"]), int(case.settings["ranks"]), where)
        apart = np.unique(levels.distance(nodes[0], nodes[1:])).tolist()
        if classes == BETWEEN and not any(apart):
            labels.append(None)
        else:
            labels.append(levels.names[apart[-1]] if where and first not in apart else FIRST)
    return labels


def add_class_values(entry: Family, parameters: ParameterSet, by_class: Mapping[str, ParameterSet]) -> ParameterSet:
    """Return a set with the values of other distance classes wherever these differ."""
    values, draws, forms = dict(parameters.values), dict(parameters.draws), dict(parameters.forms)
    curves = list(parameters.curves)
    usual = _group_by_function(entry, parameters)
    for name, of_class in by_class.items():
        for function, texts in _group_by_function(entry, of_class).items():
            if texts == usual.get(function) and all(
                _find_value(of_class, text) == _find_value(parameters, text) for text in texts
            ):
                continue
            whole = bool(entry.by_name[parse(texts[0]).parameter].argument)
            if whole:
                forms[in_class(function, name, False)] = of_class.forms.get(function, "constant")
            values |= {in_class(text, name, whole): of_class.values[text] for text in texts}
            draws |= {in_class(text, name, whole): of_class.draws[text] for text in texts if text in of_class.draws}
        curves += [replace(curve, title=f"{curve.title}, {name}") for curve in of_class.curves]
    settings = {**parameters.settings, "classes": list(by_class)} if by_class else parameters.settings
    everything = {"values": values, "draws": draws, "forms": forms, "settings": settings}
    return replace(parameters, **everything, curves=tuple(curves))


def _group_by_function(entry: Family, parameters: ParameterSet) -> dict[str, list[str]]:
    """Return the values of each function together; a number is a group of its own."""
    entries: dict[str, list[str]] = {}
    for text in parameters.values:
        function = parse(text).function if entry.by_name[parse(text).parameter].argument else text
        entries.setdefault(function, []).append(text)
    return entries


def _find_value(parameters: ParameterSet, text: str) -> tuple:
    return parameters.values[text].value, parameters.draws.get(text)


def compare_distance_classes(evidence: Observed) -> dict[str, list[float]]:
    """Return, for each distance class, the least and the greatest ratio over the sizes of its round trips to those of
    the first two nodes."""
    levels = Hierarchy.of(evidence.levels)
    first = levels.names[int(levels.distance(0, min(1, levels.nodes - 1)))]
    for probe_name in ROUND_TRIPS:
        times: dict[str, dict[object, list[float]]] = {}
        cases = evidence.probes.get(probe_name, ())
        for case, label in zip(cases, _label_cases(levels, probe_name, evidence) if cases else (), strict=True):
            if all(case.settings.get(name, plain) == plain for name, plain in SINGLE_MESSAGE.items()):
                name = str(case.settings.get("apart", label or first))
                times.setdefault(name, {}).setdefault(case.settings["bytes"], []).append(float(np.median(case.seconds)))
        if len(times) > 1 and first in times:
            usual = {size: np.mean(samples) for size, samples in times[first].items()}
            return {name: _find_ratio_range(own, usual) for name, own in times.items() if own.keys() & usual.keys()}
    return {}


def _find_ratio_range(own: Mapping[object, list[float]], usual: Mapping[object, float]) -> list[float]:
    """Return the smallest and the largest ratio."""
    ratios = [seconds / usual[size] for size, samples in own.items() if size in usual for seconds in samples]
    return [float(min(ratios)), float(max(ratios))]


def compare_round_trips(
    entry: Family, parameters: ParameterSet, evidence: Observed
) -> dict[str, dict[str, list[float]]]:
    """Return measured and predicted round trips by distance class, as parameter sets store them. They come from the
    probe that ran on most pairs of nodes, or within a node from probe `mixture`. Empty if the model predicts none."""
    if not parameters.values:
        return {}
    model = Model.of(entry, Values.of(parameters))
    widest = next((name for name in ROUND_TRIPS if evidence.probes.get(name)), "")
    times = _collect_round_trips(model, widest, evidence.probes.get(widest, ()), evidence)
    if NODE not in times:
        within = [case for case in evidence.probes.get(MIXTURE, ()) if int(case.settings["turn"]) == WITHIN]
        times |= _collect_round_trips(model, MIXTURE, within, evidence)
    return {name: _average_by_size(by_size) for name, by_size in times.items()}


def _collect_round_trips(
    model: Model, probe: str, cases: Sequence[CaseSamples], evidence: Observed
) -> dict[str, dict[int, list[Array]]]:
    """Return ln(measured) and ln(predicted) of the round trips of each case, by distance class and size."""
    times, levels = defaultdict(lambda: defaultdict(list)), Hierarchy.of(evidence.levels)
    for case in cases:
        pattern = make_case_schedule(probe, case.settings, evidence.types)
        if (
            pattern is None
            or not len(case.seconds)
            or (not model.entry.by_type and _is_on_other_type(pattern, evidence))
        ):
            continue
        try:
            trip = np.array([np.median(case.seconds), np.ravel(model.cost(pattern))[0]]) / (pattern.messages / 2)
        except UserError:  # of some distance nothing was measured
            continue
        if trip.min() > 0:
            (distance,) = levels.apart(pattern.node, pattern.src, pattern.dst)
            times[levels.names[distance]][int(case.settings["bytes"])].append(np.log(trip))
    return dict(times)


def _is_on_other_type(pattern: Schedule, evidence: Observed) -> bool:
    """Return whether a case has ranks on nodes of another type than the first.

    A model without node types predicts such a case like any other.
    """
    return bool(rank_types(pattern.node, evidence.types).any())


def _average_by_size(by_size: Mapping[int, list[Array]]) -> dict[str, list[float]]:
    sizes = sorted(by_size)
    measured, predicted = np.exp([np.mean(by_size[size], axis=0) for size in sizes]).T
    rounded = {"measured": measured, "predicted": predicted}
    return {"bytes": sizes, **{name: [float(f"{time:.6g}") for time in column] for name, column in rounded.items()}}


ROUNDING_SECONDS = 1e-18  # seconds, or seconds a byte: the rounding of exact simulations
MAX_RELATIVE_HALF_WIDTH = 0.5  # half an interval over its value: from there on a parameter counts as not identifiable


def collect_observed(observations: pd.DataFrame, platform: str, seed: int, where: PlannedPlatform) -> Observed:
    """Return the samples of the probes on a platform. Matrix points are left out: they are held out from every fit."""
    chosen = observations[
        (observations["kind"] == "probe") & (observations["platform"] == platform) & observations["valid"]
    ]
    if "setting" in chosen and len(jobs := sorted(chosen["setting"].unique())) > 1:
        names = " and ".join(f"'{one_line(name, 80)}'" for name in jobs[:2])
        raise UserError(f"observations: platform '{platform}' has probes of the settings {names}, wanted those of one")
    probes: dict[str, list[CaseSamples]] = {}
    for (name, case), group in chosen.groupby(["name", "id"], sort=False):
        first = group.iloc[0]
        columns = (*probe(name).columns, "ranks", "layout", "pair")
        for column in columns:
            if pd.isna(first.get(column)):
                raise UserError(
                    f"observations: case {one_line(case, 60)} of probe {name}: found no {column}, wanted one"
                )
        settings = {column: _setting(first[column]) for column in columns}
        settings["where"] = str(first.get("where") or "")
        counts = group["count"].to_numpy() if "count" in group and group["count"].notna().all() else None
        samples = CaseSamples(settings, group["seconds"].to_numpy(), group["pass"].to_numpy(), counts)
        probes.setdefault(name, []).append(samples)
    return Observed(probes, seed, where.types, levels=where.levels)


def _setting(value: object) -> object:
    return value if isinstance(value, str) else int(value)


def fit(plan: Plan, observations: pd.DataFrame, name: str, platform: str) -> ParameterSet:
    """Fit a model to the probes of a platform. If the data do not suffice, return a set without values that names what
    is missing."""
    entry = family(name)
    if platform not in plan.platforms:
        raise UserError(f"no platform '{platform}' in the plan; {suggest(platform, plan.platforms)}")
    where = plan.platforms[platform]
    evidence = collect_observed(observations, platform, plan.seed, where)
    try:
        parameters = fit_set(entry, evidence)
    except UserError as error:
        lacking = {parameter.name: error.message for parameter in entry.parameters}
        parameters = ParameterSet(name, platform, "", {}, missing=lacking)
    return replace(
        parameters,
        platform=platform,
        source=f"{'fitted' if parameters.values else 'not fitted'} from the probes of experiment {plan.experiment}",
        simulated=where.simulated,
        provenance={"experiment_digest": plan.digest, "platform_digest": where.digest, "seed": plan.seed},
    )


def fit_set(entry: Family, evidence: Observed) -> ParameterSet:
    """Return the parameter set of a model from its probes, with values for each distance class on a network of several
    levels."""
    by_class = split_by_class(entry, evidence)
    first = by_class.pop(FIRST)
    parameters = make_parameter_set(entry, entry.fit(first))
    vectors = longest_vectors(evidence, copies="copy" in parameters.forms) if "work" in entry.probes else {}
    far = find_unequal_classes(entry, evidence, parameters)
    within_classes = {"heterogeneity_by_class": far} if far else {}
    settings = {**parameters.settings, **within_classes}
    parameters = replace(parameters, left_out=measure_left_out_error(entry, first), vectors=vectors, settings=settings)
    if not evidence.levels:
        heterogeneity = {"heterogeneity": round(times, 3)} if (times := measure_unevenness(evidence)) > 1 else {}
        by_node = NODE in parameters.settings.get(LINK_FACTORS, {})
        if not (entry.by_type or by_node) and (types := find_unequal_types(evidence)):
            heterogeneity |= {"types": dict(evidence.types), "heterogeneity_by_types": types}
        seen, overlay = list_probed_classes(entry, first), {*entry.on_overlay} - LOCAL
        heterogeneity |= {"probed_classes": seen} if seen or not overlay else {}
        return _check_fit(entry, replace(parameters, settings={**parameters.settings, **heterogeneity}), evidence)
    classes = {}
    for name, view in by_class.items():
        with suppress(UserError):  # the missing values are reported for its messages
            classes[name] = make_parameter_set(entry, entry.fit(view))
    parameters = add_class_values(entry, parameters, classes)
    seen = {*list_probed_classes(entry, first), *classes}
    names = [name for name in Hierarchy.of(evidence.levels).names if name in seen]
    settings = {**parameters.settings, **evidence.placement, "probed_classes": names}
    if not entry.has_classes and (far := compare_distance_classes(evidence)):
        settings["distance_ratios"] = far
    return _check_fit(entry, replace(parameters, settings=settings), evidence)


def _check_fit(entry: Family, parameters: ParameterSet, evidence: Observed) -> ParameterSet:
    """Return the set with its errors at single messages and under contention."""
    for name, tell in (("single_messages", compare_round_trips), ("contention", check_contention)):
        if off := tell(entry, parameters, evidence):
            parameters = replace(parameters, settings={**parameters.settings, name: off})
    return parameters


def list_probed_classes(entry: Family, evidence: Observed) -> list[str]:
    """Return the distance classes over which the messages of the model's probes went."""
    levels, seen = Hierarchy.of(evidence.levels), set()
    for name in set(entry.probes) - LOCAL:
        settings = [case.settings for case in evidence.probes.get(name, ())]
        for layout, ranks, where in {(own["layout"], own["ranks"], own["where"]) for own in settings}:
            seen.update(levels.classes(nodes_of(str(layout), int(ranks), str(where))))
    return [levels.names[distance] for distance in sorted(seen)]


def make_parameter_set(entry: Family, fitted: Fitted) -> ParameterSet:
    """Return draws as values with intervals, units and notes. The caller adds the provenance."""
    fitted = replace(
        fitted, values={key: np.where(np.abs(d) < ROUNDING_SECONDS, 0.0, d) for key, d in fitted.values.items()}
    )
    estimated = {key: d for key, d in fitted.values.items() if not entry.by_name[parse(key).parameter].random}
    unknown = find_indistinct_values(estimated) | dict(fitted.unknown)
    values = {}
    for value, draws in fitted.values.items():
        name = parse(value).parameter
        doubt = unknown.get(value, unknown.get(name, ""))
        note = "; ".join(text for text in (doubt, fitted.notes.get(value, fitted.notes.get(name, ""))) if text)
        values[value] = estimate(draws, unit(entry, value, fitted.forms), note, not doubt, fitted.reach.get(value))
    return ParameterSet(
        family=entry.name,
        platform="",
        source="",
        values=values,
        forms=fitted.forms,
        settings=fitted.settings,
        missing=fitted.missing,
        bytes_range=tuple(float(end) for end in fitted.bytes_range),
        errors=fitted.errors,
        curves=fitted.curves,
        draws={key: tuple(float(draw) for draw in draws[1:]) for key, draws in fitted.values.items() if varies(draws)},
    )


def varies(draws: np.ndarray) -> bool:
    """Return whether a value has draws that differ from its estimate; in a simulator without noise none do."""
    return bool(np.any(draws != draws[0]))


def find_indistinct_values(values: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return the values that the data do not determine: their interval is as wide as they are. They may be 0, or are
    only determined together with another."""
    doubts = {}
    spread = {name: draws[1:] for name, draws in values.items() if np.std(draws[1:]) > 0}
    for name, draws in spread.items():
        low, high = np.percentile(draws, [2.5, 97.5])
        if high - low < 2 * MAX_RELATIVE_HALF_WIDTH * abs(values[name][0]):
            continue
        partners = {other: abs(np.corrcoef(draws, column)[0, 1]) for other, column in spread.items() if other != name}
        partner = max(partners, key=partners.get, default="")
        together = f", only together with {partner}" if partner and partners[partner] > 0.9 else ""
        doubts[name] = f"not identifiable from these data{together}: its interval is as wide as its value"
    return doubts
