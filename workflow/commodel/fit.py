"""Fits one family on one platform: from the table of observations to a parameter set with intervals."""

from dataclasses import replace

import pandas as pd

from commodel.errors import UserError
from commodel.families import Family, family
from commodel.fitting import CaseSamples, Fitted, Observed, estimate
from commodel.probes import probe
from commodel.records import ParameterSet, Plan


def observed(observations: pd.DataFrame, platform: str, seed: int) -> Observed:
    """What the probes measured on a platform. Matrix points stay out: they are held out from every fit."""
    chosen = observations[
        (observations["kind"] == "probe") & (observations["platform"] == platform) & observations["valid"]
    ]
    probes: dict[str, list[CaseSamples]] = {}
    for (name, _), group in chosen.groupby(["name", "id"], sort=False):
        settings = {column: _setting(group[column].iloc[0]) for column in probe(name).columns}
        probes.setdefault(name, []).append(CaseSamples(settings, group["seconds"].to_numpy(), group["pass"].to_numpy()))
    return Observed(probes, seed)


def _setting(value: object) -> object:
    return value if isinstance(value, str) else int(value)


def fit(plan: Plan, observations: pd.DataFrame, name: str, platform: str) -> ParameterSet:
    entry = family(name)
    evidence = observed(observations, platform, plan.seed)
    try:
        fitted = entry.fit(evidence)
    except UserError as error:
        raise UserError(f"family {name} cannot be fitted on platform '{platform}': {error.message}") from None
    parameters = as_parameters(entry, fitted)
    where = plan.platforms[platform]
    return replace(
        parameters,
        platform=platform,
        source=f"fitted from the probes of experiment {plan.experiment}",
        simulated=bool(where["simulated"]),
        provenance={"experiment_digest": plan.digest, "platform_digest": where["digest"], "seed": plan.seed},
    )


def as_parameters(entry: Family, fitted: Fitted) -> ParameterSet:
    """Draws as values with intervals, units and notes; where they come from is for the caller to add."""
    values = {}
    for key, draws in fitted.values.items():
        name = key.split(".")[0]
        note = fitted.notes.get(key, fitted.notes.get(name, ""))
        values[key] = estimate(draws, _unit(entry, name), note)
    return ParameterSet(
        family=entry.name,
        platform="",
        source="",
        values=values,
        forms=fitted.forms,
        bytes_range=tuple(float(end) for end in fitted.bytes_range),
        curves=fitted.curves,
        draws={key: tuple(float(draw) for draw in draws[1:]) for key, draws in fitted.values.items()},
    )


def _unit(entry: Family, name: str) -> str:
    return next(parameter.unit for parameter in entry.parameters if parameter.name == name)
