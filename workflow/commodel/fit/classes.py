"""Values by distance class: a family is fitted once to what its probes say of each class.

What the first nodes of the machine say holds wherever nothing else is said. A probe may have been run in further
classes, too; what a fit to those says otherwise is a value of that class. Where nodes are of several types, these are
nodes of the first: a family whose values go by type has none by class, as not every pair of types was probed in each.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from commodel.fit.leftout import nodes_of
from commodel.hierarchy import NODE, Hierarchy
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.keys import PART, in_class, parse
from commodel.models.probes import BETWEEN, EVERYWHERE, probe
from commodel.parameters import ParameterSet

ROUND_TRIPS = ("distance", "pingpong", "prtt")  # probes whose cases are such, the widest first
SINGLE_MESSAGE = {"n": 1, "delay": 0, "late": 0}  # settings of prtt at which a round trip is a single message each way
FIRST = ""  # the class of the first nodes
Labels = Mapping[str, list[str | None]]  # of every case of a probe: in which class it was run, None: in all


def views(entry: Family, evidence: Observed) -> dict[str, Observed]:
    """What was measured where a platform without levels measures, too, and beside it what was in every class in which
    all the probes of a family were run that tell classes apart."""
    if not evidence.levels:
        return {FIRST: evidence}
    levels = Hierarchy.of(evidence.levels)
    labels = {name: _labels(levels, name, evidence) for name in evidence.probes}
    needed = [labels[name] for name in entry.probes if probe(name).classes and evidence.probes.get(name)]
    classes = [FIRST]
    if entry.by_class and needed and not (evidence.types and entry.by_type):
        possible = [name for name in levels.names if not PART.fullmatch(name)]
        possible = [name for name in possible if name != NODE or entry.by_class == EVERYWHERE]
        classes += [name for name in possible if all(name in of_probe for of_probe in needed)]
    return {name: _view(evidence, labels, name) for name in classes}


def _view(evidence: Observed, labels: Labels, name: str) -> Observed:
    probes = {
        probe: [case for case, own in zip(cases, labels[probe], strict=True) if own in (name, None)]
        for probe, cases in evidence.probes.items()
    }
    return Observed(probes, evidence.seed, evidence.types, levels=evidence.levels)


def _labels(levels: Hierarchy, name: str, evidence: Observed) -> list[str | None]:
    """Rank 0 sends to all others, or to those of them that are on another node."""
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


def with_classes(entry: Family, parameters: ParameterSet, by_class: Mapping[str, ParameterSet]) -> ParameterSet:
    """A set with what others, of distance classes, say otherwise."""
    values, draws, forms = dict(parameters.values), dict(parameters.draws), dict(parameters.forms)
    curves = list(parameters.curves)
    usual = _by_function(entry, parameters)
    for name, of_class in by_class.items():
        for function, texts in _by_function(entry, of_class).items():
            if texts == usual.get(function) and all(
                _value(of_class, text) == _value(parameters, text) for text in texts
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


def _by_function(entry: Family, parameters: ParameterSet) -> dict[str, list[str]]:
    """The values of each function together, a number by itself."""
    entries: dict[str, list[str]] = {}
    for text in parameters.values:
        function = parse(text).function if entry.by_name[parse(text).parameter].argument else text
        entries.setdefault(function, []).append(text)
    return entries


def _value(parameters: ParameterSet, text: str) -> tuple:
    return parameters.values[text].value, parameters.draws.get(text)


def apart(evidence: Observed) -> dict[str, list[float]]:
    """Of each distance class how many times as long as between the first two nodes a round trip takes there: at the
    size where it is fewest, and where it is most."""
    levels = Hierarchy.of(evidence.levels)
    first = levels.names[int(levels.distance(0, min(1, levels.nodes - 1)))]
    for probe_name in ROUND_TRIPS:
        times: dict[str, dict[object, list[float]]] = {}
        cases = evidence.probes.get(probe_name, ())
        for case, label in zip(cases, _labels(levels, probe_name, evidence) if cases else (), strict=True):
            if all(case.settings.get(name, plain) == plain for name, plain in SINGLE_MESSAGE.items()):
                name = str(case.settings.get("apart", label or first))
                times.setdefault(name, {}).setdefault(case.settings["bytes"], []).append(float(np.median(case.seconds)))
        if len(times) > 1 and first in times:
            usual = {size: np.mean(samples) for size, samples in times[first].items()}
            return {name: _ratios(own, usual) for name, own in times.items() if own.keys() & usual.keys()}
    return {}


def _ratios(own: Mapping[object, list[float]], usual: Mapping[object, float]) -> list[float]:
    """Of the nearest pair and the farthest."""
    ratios = [seconds / usual[size] for size, samples in own.items() if size in usual for seconds in samples]
    return [float(min(ratios)), float(max(ratios))]
