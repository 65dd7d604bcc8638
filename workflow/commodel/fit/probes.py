"""Fits one family on one platform: from the table of observations to a parameter set with intervals."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd

from commodel.errors import UserError, one_line, suggest
from commodel.fit.alone import round_trips
from commodel.fit.classes import FIRST, apart, views, with_classes
from commodel.fit.crowding import crowding
from commodel.fit.evenness import unevenness, unlike, unlike_types
from commodel.fit.leftout import left_out, nodes_of
from commodel.hierarchy import Hierarchy
from commodel.models.families import Family, family, unit
from commodel.models.fitting.memory import longest
from commodel.models.fitting.observed import CaseSamples, Fitted, Observed, estimate
from commodel.models.keys import parse
from commodel.models.probes import LOCAL, probe
from commodel.parameters import ParameterSet
from commodel.records import Plan, PlannedPlatform

ROUNDING = 1e-18  # seconds, or seconds a byte: the rounding of exact simulations
WEAK = 0.5  # half an interval over its value: from there on a parameter counts as not told apart


def observed(observations: pd.DataFrame, platform: str, seed: int, where: PlannedPlatform) -> Observed:
    """What the probes measured on a platform. Matrix points stay out: they are held out from every fit."""
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
    """A family's parameters on a platform. Where the data do not suffice, a set without values that says what lacks."""
    entry = family(name)
    if platform not in plan.platforms:
        raise UserError(f"no platform '{platform}' in the plan; {suggest(platform, plan.platforms)}")
    where = plan.platforms[platform]
    evidence = observed(observations, platform, plan.seed, where)
    try:
        parameters = fitted_set(entry, evidence)
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


def fitted_set(entry: Family, evidence: Observed) -> ParameterSet:
    """What the probes say of a family's parameters; on a network of several levels, of each distance class."""
    by_class = views(entry, evidence)
    first = by_class.pop(FIRST)
    parameters = as_parameters(entry, entry.fit(first))
    vectors = longest(evidence, copies="copy" in parameters.forms) if "work" in entry.probes else {}
    apart_within = {"unlike": far} if (far := unlike(entry, evidence)) else {}
    settings = {**parameters.settings, **apart_within}
    parameters = replace(parameters, left_out=left_out(entry, first), vectors=vectors, settings=settings)
    if not evidence.levels:
        uneven = {"uneven": round(times, 3)} if (times := unevenness(evidence)) > 1 else {}
        if not entry.by_type and (types := unlike_types(evidence)):
            uneven |= {"types": dict(evidence.types), "unlike_types": types}
        seen, overlay = probed(entry, first), {*entry.on_overlay} - LOCAL
        uneven |= {"probed": seen} if seen or not overlay else {}
        return _tried(entry, replace(parameters, settings={**parameters.settings, **uneven}), evidence)
    classes = {}
    for name, view in by_class.items():
        with suppress(UserError):  # what lacks is said of its messages
            classes[name] = as_parameters(entry, entry.fit(view))
    parameters = with_classes(entry, parameters, classes)
    seen = {*probed(entry, first), *classes}
    names = [name for name in Hierarchy.of(evidence.levels).names if name in seen]
    settings = {**parameters.settings, **evidence.placement, "probed": names}
    if not entry.sees_classes and (far := apart(evidence)):
        settings["apart"] = far
    return _tried(entry, replace(parameters, settings=settings), evidence)


def _tried(entry: Family, parameters: ParameterSet, evidence: Observed) -> ParameterSet:
    """With what its prices are off by where a message is alone, and where all nodes send at once."""
    for name, tell in (("alone", round_trips), ("crowded", crowding)):
        if off := tell(entry, parameters, evidence):
            parameters = replace(parameters, settings={**parameters.settings, name: off})
    return parameters


def probed(entry: Family, evidence: Observed) -> list[str]:
    """The distance classes that messages of its probes went over."""
    levels, seen = Hierarchy.of(evidence.levels), set()
    for name in set(entry.probes) - LOCAL:
        settings = [case.settings for case in evidence.probes.get(name, ())]
        for layout, ranks, where in {(own["layout"], own["ranks"], own["where"]) for own in settings}:
            seen.update(levels.classes(nodes_of(str(layout), int(ranks), str(where))))
    return [levels.names[distance] for distance in sorted(seen)]


def as_parameters(entry: Family, fitted: Fitted) -> ParameterSet:
    """Draws as values with intervals, units and notes; where they come from is for the caller to add."""
    fitted = replace(fitted, values={key: np.where(np.abs(d) < ROUNDING, 0.0, d) for key, d in fitted.values.items()})
    unknown = indistinct(fitted.values) | dict(fitted.unknown)
    values = {}
    for key, draws in fitted.values.items():
        name = parse(key).parameter
        doubt = unknown.get(key, unknown.get(name, ""))
        note = "; ".join(text for text in (doubt, fitted.notes.get(key, fitted.notes.get(name, ""))) if text)
        values[key] = estimate(draws, unit(entry, key, fitted.forms), note, not doubt, fitted.reach.get(key))
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
    """Whether a value has draws to keep: where there are none the estimate stands for them, as in a simulator."""
    return bool(np.any(draws != draws[0]))


def indistinct(values: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Values whose interval is as wide as they are: told apart from 0 only badly, or only together with another."""
    doubts = {}
    spread = {name: draws[1:] for name, draws in values.items() if np.std(draws[1:]) > 0}
    for name, draws in spread.items():
        low, high = np.percentile(draws, [2.5, 97.5])
        if high - low < 2 * WEAK * abs(values[name][0]):
            continue
        partners = {other: abs(np.corrcoef(draws, column)[0, 1]) for other, column in spread.items() if other != name}
        partner = max(partners, key=partners.get, default="")
        together = f", only together with {partner}" if partner and partners[partner] > 0.9 else ""
        doubts[name] = f"not told apart by these data{together}: its interval is as wide as its value"
    return doubts
