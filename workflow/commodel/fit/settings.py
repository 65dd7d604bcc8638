"""Measured collectives of several settings: a family is fitted to those of one, the reference, and the others have
factors against it (`fit/pace.py`). How far off its prices are in jobs that it was not fitted to widens what they carry.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import compress

import numpy as np

from commodel.errors import UserError, suggest
from commodel.fit.collectives import fit_measured
from commodel.fit.pace import pace_of
from commodel.fit.pointtable import Measured
from commodel.parameters import Errors, ParameterSet
from commodel.price.bands import wider_for
from commodel.price.pace import Pace, as_json, from_json
from commodel.price.points import predict
from commodel.price.residuals import ALL, kind_of, operation_class
from commodel.price.status import PriceStatus
from commodel.records import Point

SETTING, PACES, WHY_NOT = "setting", "paces", "why_not"  # in the provenance of a set
NO_NAME = "(none)"  # what the setting of rows is called that have none


def named(setting: str) -> str:
    return f"setting '{setting}'" if setting else f"setting {NO_NAME}"


def settings_of(measured: Measured) -> list[str]:
    """One for each point."""
    return measured.settings or [""] * len(measured.points)


def only(measured: Measured, flags: list[bool]) -> Measured:
    """Some of its points."""
    columns = (measured.points, measured.seconds, settings_of(measured))
    points, seconds, settings = (list(compress(column, flags)) for column in columns)
    return replace(measured, points=points, seconds=seconds, settings=settings)


def in_setting(measured: Measured, setting: str) -> Measured:
    return only(measured, [own == setting for own in settings_of(measured)])


def reference_of(measured: Measured, asked: str | None = None) -> str:
    """The setting asked for, else the one with most points; of equals the first."""
    counts = Counter(settings_of(measured))
    if asked is not None and asked not in counts:
        raise UserError(f"found no point of setting '{asked}'; {suggest(asked, counts)}", key="--setting")
    return counts.most_common(1)[0][0] if asked is None else asked


def fit_in_settings(measured: Measured, name: str, where: str, asked: str | None = None) -> ParameterSet:
    """A family fitted to the points of one setting; where there are several, it says which, and has the factors of the
    others in its provenance."""
    reference = reference_of(measured, asked)
    seen = in_setting(measured, reference)
    parameters = fit_measured(seen.points, seen.seconds, name, where)
    others = [other for other in dict.fromkeys(settings_of(measured)) if other != reference]
    if not others:
        return replace(parameters, provenance={**parameters.provenance, **({SETTING: reference} if reference else {})})
    paces = []
    for other in others:
        try:
            paces.append(as_json(_pace(parameters, in_setting(measured, other), seen), other))
        except UserError as error:
            paces.append({SETTING: other, WHY_NOT: error.message})
    return replace(
        parameters,
        source=f"{parameters.source}, of {named(reference)}",
        errors=_widened(parameters, measured, others),
        provenance={**parameters.provenance, SETTING: reference, PACES: paces},
    )


def paces_in_words(parameters: ParameterSet) -> Iterator[str]:
    """A line for every other setting that the set has factors of, or has none of."""
    reference = named(str(parameters.provenance.get(SETTING, "")))
    for entry in parameters.provenance.get(PACES, ()):
        name = named(entry[SETTING])
        if WHY_NOT in entry:
            yield f"{name} has no factors: {entry[WHY_NOT]}"
        else:
            yield f"{name} against {reference}: {from_json(entry).text}; {entry['points']} points"


def _pace(parameters: ParameterSet, there: Measured, seen: Measured) -> Pace:
    """A point that the reference has too is compared with its time there, the others with their prices."""
    times = dict(zip(seen.points, seen.seconds, strict=True))
    prices = _prices(parameters, there.points)
    usual = np.array([times.get(point, price) for point, price in zip(there.points, prices, strict=True)])
    priced = np.isfinite(usual) & np.isfinite(prices)
    points = list(compress(there.points, priced))
    return pace_of(parameters, points, np.log(np.array(there.seconds)[priced] / usual[priced]))


def _prices(parameters: ParameterSet, points: list[Point]) -> np.ndarray:
    """NaN where the family says nothing of a point's size."""
    rows = predict(parameters, points, strict=False, draws=0)
    return np.array([row.seconds if PriceStatus.votes(row.status) and row.seconds > 0 else np.nan for row in rows])


def _widened(parameters: ParameterSet, measured: Measured, others: list[str]) -> dict[str, Errors]:
    """What the set carries, wider at both ends by what it takes to hold 95 % of the points of settings that it was not
    fitted to, each counting alike."""
    there = only(measured, [setting in others for setting in settings_of(measured)])
    logs = np.log(np.array(there.seconds) / _prices(parameters, there.points))
    named = [operation_class(point.operation) for point in there.points]
    setting, bands = np.array(settings_of(there)), {}
    for name, band in parameters.errors.items():
        of_kind = np.array([name in (operation, kind_of(operation), ALL) for operation in named]) & np.isfinite(logs)
        more = wider_for(logs[of_kind], setting[of_kind], band.low, band.high) if of_kind.any() else 0.0
        jobs = band.jobs + len(np.unique(setting[of_kind]))
        beyond = {end: (low - more, high + more, growth) for end, (low, high, growth) in band.beyond.items()}
        bands[name] = replace(band, low=band.low - more, high=band.high + more, jobs=jobs, beyond=beyond)
    return bands
