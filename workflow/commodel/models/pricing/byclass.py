"""Plays a schedule with values by distance class: what a family says of a message is asked once with the values of each
class that occurs, and every message gets the answer of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from commodel.models import Array
from commodel.models.pricing import replay
from commodel.models.pricing.pairs import classes
from commodel.models.pricing.replay import Costs
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule

Tell = Callable[[Schedule, Values], Costs]


def replayed(schedule: Schedule, values: Values, costs: Tell, types: Mapping[str, int] | None = None) -> Array:
    """When each rank is done, by a function that tells what messages cost; local work costs gamma."""

    def of_part(part: Schedule) -> Costs:
        return costs_by_class(part, values, costs) if values.classes else costs(part, values)

    return replay.replayed(schedule, of_part, lambda part: part.work_seconds(values["gamma"]), types, values.levels)


def costs_by_class(schedule: Schedule, values: Values, costs: Tell) -> Costs:
    names, of = classes(schedule, values)
    occurring = np.unique(of).tolist() or [0]
    by_class = [costs(schedule, values.of_class(names[number])) for number in occurring]
    if len(by_class) == 1:
        return by_class[0]
    rows = [np.flatnonzero(of == number) for number in occurring]
    return Costs(*(_chosen([getattr(own, entry.name) for own in by_class], rows) for entry in fields(Costs)))


def _chosen(columns: Sequence[Array | float | None], rows: Sequence[np.ndarray]) -> Array | float | None:
    """Of each column its rows. A class in which no message asks its receiver has none for that."""
    if all(column is None for column in columns):
        return None
    columns = [np.array([np.nan]) if column is None else np.asarray(column) for column in columns]
    count = sum(map(len, rows))
    lead = np.broadcast_shapes(*(column.shape[:-1] for column in columns))
    chosen = np.empty((*lead, count))
    for column, own in zip(columns, rows, strict=True):
        chosen[..., own] = np.broadcast_to(column, (*lead, count))[..., own]
    return chosen
