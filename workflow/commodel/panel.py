"""A panel of families: what each of them says about the same candidates, in time of one wave and time between waves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.families import complete, family
from commodel.predict import doubts
from commodel.records import ParameterSet
from commodel.schedule import Schedule, stack
from commodel.values import Values
from commodel.vote import BLIND
from commodel.waves import period

CELLS = 2_000_000  # draws × messages of one price
FEWEST = 20  # draws, whatever that takes


@dataclass(frozen=True, eq=False)
class Panel:
    """Of every family that prices all candidates: (draws, candidates), the first row the estimate; times between waves,
    NaN where it says nothing about a stream; what it doubts of each. And why the others are silent."""

    prices: Mapping[str, np.ndarray]
    periods: Mapping[str, np.ndarray]
    doubted: Mapping[str, Sequence[str]]
    silent: Mapping[str, str]

    @property
    def doubts(self) -> list[str]:
        """What anyone doubts, by candidate; empty where nobody does."""
        said = zip(*self.doubted.values(), strict=True)
        return ["; ".join(dict.fromkeys(text for text in texts if text != "ok")) for texts in said]

    def period(self, weights: Mapping[str, float]) -> np.ndarray:
        """The weighted geometric mean over the families that say something about a stream."""
        saying = [name for name, times in self.periods.items() if np.isfinite(times).all() and (times > 0).all()]
        total = sum(weights[name] for name in saying)
        if not total:
            return np.full(len(next(iter(self.periods.values()))), np.nan)
        return np.exp(sum(weights[name] * np.log(self.periods[name]) for name in saying) / total)


def ask(sets: Mapping[str, ParameterSet], patterns: Sequence[Schedule]) -> Panel:
    """Has every family price all candidates. One that cannot, or that is blind to these sizes, is silent."""
    prices, periods, doubted, silent = {}, {}, {}, {}
    for name, parameters in sets.items():
        try:
            said = _doubts(parameters, patterns)
            if blind := next((text for text in said if text.startswith(BLIND)), ""):
                raise UserError(blind)
            prices[name], periods[name] = _prices(parameters, patterns)
            doubted[name] = said
        except UserError as error:
            silent[name] = error.message
    return Panel(prices, periods, doubted, silent)


def estimate(parameters: ParameterSet, pattern: Schedule) -> float:
    """The price of one pattern, without an interval."""
    entry = family(parameters.family)
    return float(np.ravel(pattern.cost(entry.price(pattern, complete(entry, Values.exact(parameters)))))[0])


def _doubts(parameters: ParameterSet, patterns: Sequence[Schedule]) -> list[str]:
    entry = family(parameters.family)
    values = complete(entry, Values.exact(parameters))
    return [doubts(entry, parameters, values, stack([pattern]))[0] for pattern in patterns]


def _prices(parameters: ParameterSet, patterns: Sequence[Schedule]) -> tuple[np.ndarray, np.ndarray]:
    entry = family(parameters.family)
    exact = complete(entry, Values.exact(parameters))
    values = complete(entry, _with_draws(parameters, max(len(pattern.src) for pattern in patterns)))
    costs, periods = [], []
    for pattern in patterns:
        costs.append(pattern.cost(np.broadcast_to(entry.price(pattern, values), (*values.lead, pattern.ranks))))
        found = period(entry, pattern, exact)
        periods.append(np.nan if found is None else float(np.ravel(found)[0]))
    prices = np.stack(costs, axis=-1)
    if not (np.isfinite(prices).all() and (prices[0] > 0).all()):
        raise UserError("it prices something at 0, or at no number")
    return np.maximum(prices, prices[0].min() * 1e-6), np.array(periods)


def _with_draws(parameters: ParameterSet, messages: int) -> Values:
    """The estimate, then draws of it; fewer where a schedule is long."""
    exact = Values.exact(parameters)
    if not parameters.draws:
        return exact
    drawn = Values.drawn(parameters).some(0, max(FEWEST, CELLS // max(messages, 1)))
    numbers = {name: np.concatenate([exact[name], drawn[name]]) for name in exact.numbers}
    return Values(numbers, exact.forms, exact.settings)
