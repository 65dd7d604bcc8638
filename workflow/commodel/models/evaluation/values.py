"""Values of a model's parameters (`Values`): numbers and functions as stacks of bootstrap draws.

A function has a form with named coefficients (`FORMS`), or is given by samples (`Samples`). A
coefficient of function `o` is called `o.a`, a sample `o.64` (see `keys`). Values broadcast over
(draws, rows); arguments over (rows) or (sizes, 1, rows).

The value for two ranks may depend on their node types, on whether they share a node, and on their
distance class. The value of a pair is called `L.fat.thin`, within a node `L.fat.same`, of a
distance class `L.beyond`. A plain `L` is the default (`Pairs`, `Classes`).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.keys import SAME_NODE, Pair, make_key, make_sample_key, parse_key, remove_class
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import MEMORY, Schedule

PIECE_NAME = re.compile(r"[ab]|[abx]([1-9][0-9]{0,3})")
PIECEWISE, TABLE = "piecewise", "table"


@dataclass(frozen=True)
class Form:
    """f(x) = a + shape(x). `coefficients` are the arguments of the shape, besides `a`.

    `units` are those of the coefficients: u is the function's unit, x its argument's.
    """

    coefficients: tuple[str, ...]
    shape: Callable[..., Array]
    text: str
    units: tuple[str, ...]


FORMS = {
    "constant": Form((), lambda x: 0.0 * x, "a", ()),
    "linear": Form(("b",), lambda x, b: b * x, "a + b·x", ("u/x",)),
    "logarithmic": Form(("b",), lambda x, b: b * np.log(x), "a + b·ln x", ("u",)),
    "quadratic": Form(
        ("b", "c"), lambda x, b, c: b * x + c * x**2, "a + b·x + c·x²", ("u/x", "u/x²")
    ),
    "exponential": Form(
        ("b", "c"), lambda x, b, c: b * np.expm1(c * x), "a + b·(exp(c·x) − 1)", ("u", "1/x")
    ),
    "pipeline": Form(("b", "c"), lambda x, b, c: b / (c + x), "a + b/(c + x)", ("u·x", "x")),
    "saturating": Form(
        ("b", "c", "d", "e", "f"),
        lambda x, b, c, d, e, f: b / (c + x) - d * np.expm1(e * (x - f)),
        "a + b/(c + x) + d·(1 − exp(e·(x − f)))",
        ("u·x", "x", "u", "1/x", "x"),
    ),
}
FORM_NAMES = (*FORMS, PIECEWISE, TABLE)


def format_form(form: str) -> str:
    """Return the formula of a form as text."""
    if form == PIECEWISE:
        return "a + b·x, above x1 a1 + b1·x, …"
    return "samples, linear in between" if form == TABLE else FORMS[form].text


def is_value_of_form(form: str, name: str) -> bool:
    """Return whether a function of this form has a value of this name: a coefficient or a
    sample."""
    _, _, part = parsed = parse_key(name)
    if form == TABLE:
        return parsed.sample is not None
    if form == PIECEWISE:
        return PIECE_NAME.fullmatch(part) is not None
    return part == "a" or part in FORMS[form].coefficients


def list_needed_coefficients(form: str, name: str, values: Collection[str]) -> list[str]:
    """Return the coefficients that a function must have.

    A further piece has an edge x and a height a; further pieces are numbered from 1.
    """
    if form == TABLE:
        return []
    if form != PIECEWISE:
        return ["a", *FORMS[form].coefficients]
    numbers = [
        PIECE_NAME.fullmatch(parse_key(value).part)
        for value in values
        if parse_key(value).function == name
    ]
    pieces = max((int(match[1]) for match in numbers if match and match[1]), default=0)
    return ["a", *(f"{letter}{number}" for number in range(1, pieces + 1) for letter in "xa")]


def evaluate(form: str, name: str, values: Mapping[str, Array], x: ArrayLike) -> Array:
    """Return a function at `x`, from its coefficients or samples in `values`."""
    x = np.asarray(x)
    if form == TABLE:
        return Samples(name, values).at(x)
    if form == PIECEWISE:
        return _evaluate_piecewise(name, values, x)
    coefficients = (values[make_key(name, letter)] for letter in FORMS[form].coefficients)
    return values[make_key(name, "a")] + FORMS[form].shape(x, *coefficients)


def _evaluate_piecewise(name: str, values: Mapping[str, Array], x: Array) -> Array:
    """Return a piecewise linear function. At an edge, it has the value of the piece below."""
    result = values[make_key(name, "a")] + values.get(make_key(name, "b"), 0.0) * x
    number = 1
    while (edge := make_key(name, f"x{number}")) in values:
        piece = (
            values[make_key(name, f"a{number}")] + values.get(make_key(name, f"b{number}"), 0.0) * x
        )
        result = np.where(x > values[edge], piece, result)
        number += 1
    return result


class Samples:
    """A function given by samples.

    It is linear between samples and constant below the first. Beyond the last it continues the last
    slope, or is constant if that falls. A surface is also linear between its levels of concurrency;
    beyond the highest level it grows in proportion.
    """

    def __init__(self, name: str, values: Mapping[str, Array]) -> None:
        samples = [
            parsed.sample
            for parsed in map(parse_key, values)
            if parsed.function == name and parsed.sample
        ]
        positions = sorted({at for at, _ in samples})
        self.levels = sorted({level for _, level in samples if level is not None})
        if not positions:
            raise UserError(f"found no sample of {name}, wanted {name}.SIZE")
        self.positions = np.array(positions, dtype=float)
        try:
            self.columns = [  # (draws, positions) each
                np.concatenate(
                    [values[make_sample_key(name, at, level)] for at in positions], axis=-1
                )
                for level in self.levels or (None,)
            ]
        except KeyError as missing:
            raise UserError(
                f"found no sample {missing.args[0]}, wanted one at every size"
            ) from None

    def at(self, x: Array, level: Array | float | None = None) -> Array:
        """Return the function at `x`, for a surface at a level of concurrency."""
        if not self.levels:
            return self._interpolate(self.columns[0], x) * (1 if level is None else level)
        level = np.broadcast_to(1 if level is None else level, x.shape)
        total: Array = np.zeros(())
        for column, only in zip(self.columns, np.eye(len(self.levels)), strict=True):
            # 1 at the level of this column, 0 at the others
            share = np.interp(level, self.levels, only)
            if share.any():
                total = total + share * self._interpolate(column, x)
        return total * np.maximum(level / self.levels[-1], 1.0)

    def _interpolate(self, column: Array, x: Array) -> Array:
        positions = self.positions
        if len(positions) == 1:
            return column + 0.0 * x
        below = np.clip(np.searchsorted(positions, x, side="right") - 1, 0, len(positions) - 2)
        share = np.maximum((x - positions[below]) / (positions[below + 1] - positions[below]), 0.0)
        low, high = _take_samples(column, below), _take_samples(column, below + 1)
        rise = np.where(share > 1, np.maximum(high - low, 0.0), high - low)
        return np.where(share > 1, high + (share - 1) * rise, low + share * rise)


def _take_samples(column: Array, index: np.ndarray) -> Array:
    """Return samples at indices: (draws, samples) at (rows) or (sizes, 1, rows) is (draws, rows) or
    (sizes, draws, rows)."""
    samples = column[..., index]
    return samples if index.ndim <= 1 else np.moveaxis(samples[..., 0, :], 0, 1)


def find_coefficient_unit(form: str, name: str, unit: str, argument: str) -> str:
    """Return the unit of a function's value, e.g. of `o.b` of a line.

    `argument` is the unit of x, empty if x is a count.
    """
    part = parse_key(name).part
    if form == TABLE or part == "a":
        return unit
    if form == PIECEWISE:
        pattern = {"b": "u/x", "x": "x"}.get(part[:1], "u")
    else:
        pattern = dict(zip(FORMS[form].coefficients, FORMS[form].units, strict=True)).get(part, "u")
    if not argument:
        pattern = {"u/x": "u", "u/x²": "u", "u·x": "u", "x": "1", "1/x": "1"}.get(pattern, pattern)
    return pattern.replace("x", argument).replace("u", unit)


MAX_SEPARATE_SIZES = 64  # number of sizes above which equal sizes are evaluated once


@dataclass(frozen=True, eq=False)
class Values:
    """Parameter values. Every number has the shape (draws, 1), to be broadcast over rows or ranks.
    Row 0 is the estimate."""

    numbers: Mapping[str, Array]
    forms: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Results that a model computes from these values and needs for every schedule.
    cache: dict = field(default_factory=dict, init=False)
    _samples: dict[str, Samples] = field(default_factory=dict, init=False)
    _of_classes: "dict[str, Values]" = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, parameters: ParameterSet, draws: int | None = 0) -> "Values":
        """Return the values of a parameter set, followed by `draws` of its joint bootstrap draws
        (None: all), a row each."""
        count = min((len(column[:draws]) for column in parameters.draws.values()), default=0)
        numbers = {
            name: np.array([[value] for value in (estimate.value, *drawn[:count])])
            for name, estimate in parameters.values.items()
            for drawn in [parameters.draws.get(name, (estimate.value,) * count)]
        }
        return cls(numbers, parameters.forms, parameters.settings)

    def __getitem__(self, name: str) -> Array:
        return self.numbers[name]

    def __contains__(self, name: str) -> bool:
        return name in self.numbers

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of all functions, with their node types."""
        return frozenset(parse_key(name).function for name in self.numbers)

    def at(self, function: str, x: ArrayLike, level: Array | float | None = None) -> Array:
        """Return a function's value at `x`.

        `level` is the number of concurrent transfers. A function that does not depend on it is
        multiplied by it.
        """
        form = self.forms.get(function, "constant")
        if form != TABLE:
            return evaluate(form, function, self.numbers, x) * (1 if level is None else level)
        return self._table(function).at(np.asarray(x), level)

    def at_or_last(self, function: str, x: ArrayLike) -> Array:
        """Return the same as `at`, but a table is constant beyond its last sample, which suits a
        time per byte."""
        x = np.asarray(x)
        # equal sizes are evaluated once
        if x.size > MAX_SEPARATE_SIZES and (x == x[..., :1]).all():
            of_one_size = self.at_or_last(function, x[..., :1])
            return np.broadcast_to(of_one_size, (*of_one_size.shape[:-1], x.shape[-1]))
        is_table = self.forms.get(function) == TABLE
        return self.at(
            function, np.minimum(x, self._table(function).positions[-1]) if is_table else x
        )

    def _table(self, function: str) -> Samples:
        if function not in self._samples:
            self._samples[function] = Samples(function, self.numbers)
        return self._samples[function]

    @property
    def classes(self) -> tuple[str, ...]:
        """The distance classes with values of their own."""
        return tuple(self.settings.get("classes", ()))

    @cached_property
    def levels(self) -> Hierarchy:
        """The levels that define distance classes; none if no value depends on distance."""
        return Hierarchy.of(self.settings.get("levels", {})) if self.classes else Hierarchy()

    def of_class(self, name: str) -> "Values":
        """Return the values of a distance class: its own, else those of all classes."""
        if name not in self.classes:
            return self
        if name not in self._of_classes:
            in_class = {short: text for text in self.numbers if (short := remove_class(text, name))}
            functions = {
                parse_key(short).function
                for short, text in in_class.items()
                if parse_key(text).part != name
            }
            shared = {
                text: rows
                for text, rows in self.numbers.items()
                if parse_key(text).function not in functions
            }
            numbers = shared | {short: self.numbers[text] for short, text in in_class.items()}
            forms = {
                short: form
                for text, form in self.forms.items()
                if (short := remove_class(text, name))
            }
            self._of_classes[name] = replace(self, numbers=numbers, forms={**self.forms, **forms})
        return self._of_classes[name]

    def select_draws(self, start: int, stop: int) -> "Values":
        """Return the values of some draws. A value that all draws share, such as a default,
        stays."""
        selected = {
            name: rows if len(rows) == 1 else rows[start:stop]
            for name, rows in self.numbers.items()
        }
        return replace(self, numbers=selected)

    @cached_property
    def draw_shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes((1,), *(np.shape(draws)[:-1] for draws in self.numbers.values()))


class Pairs:
    """The node types of every message's ranks, and its distance class: the pairs that occur, and
    `pair`, the index of each row's pair."""

    def __init__(
        self,
        schedule: Schedule,
        types: Mapping[str, int] | None = None,
        values: Values | None = None,
    ) -> None:
        self.types = list(types or ("node",))
        rank_type = rank_types(schedule.node, types)
        self.sender, self.receiver = rank_type[schedule.src], rank_type[schedule.dst]
        self.within = schedule.channel == MEMORY
        count = len(self.types)
        receiver_or_same = np.where(self.within, count, self.receiver)
        names, distance = list_distance_classes(schedule, values) if values else ([""], 0)
        codes = np.ravel_multi_index(
            np.broadcast_arrays(self.sender, receiver_or_same, distance),
            (count, count + 1, len(names)),
        )
        used, self.pair = np.unique(codes, return_inverse=True)
        receivers = [*self.types, SAME_NODE]
        self.pairs = [
            Pair(self.types[sender], receivers[receiver], names[distance_class])
            for sender, receiver, distance_class in zip(
                *np.unravel_index(used, (count, count + 1, len(names))), strict=True
            )
        ]

    @classmethod
    def of_types(cls, schedule: Schedule, types: Mapping[str, int] | None) -> "Pairs":
        """Return the pairs of node types of a schedule, which are found once for all values."""
        key = "pairs", *(types or {}).items()
        if key not in schedule.cache:
            schedule.cache[key] = cls(schedule, types)
        return schedule.cache[key]

    def of_pair(self, values: Values, name: str) -> Array:
        """Return the value of each row's pair: (draws, rows)."""
        return _arrange_by_row(values, name, self.pairs, self.pair)

    def of_sender(self, values: Values, name: str) -> Array:
        """Return the value of each row's sender: (draws, rows)."""
        return _arrange_by_row(values, name, self.types, self.sender)

    def of_receiver(self, values: Values, name: str) -> Array:
        """Return the value of each row's receiver: (draws, rows)."""
        return _arrange_by_row(values, name, self.types, self.receiver)


def list_distance_classes(schedule: Schedule, values: Values) -> tuple[list[str], np.ndarray]:
    """Return the distance classes with values of their own, after "" for all others, and the index
    of each message's class."""
    names, levels = ["", *values.classes], values.levels
    number = np.array([names.index(name) if name in names else 0 for name in levels.names])
    return names, number[levels.distance(schedule.node[schedule.src], schedule.node[schedule.dst])]


def rank_types(node: np.ndarray, types: Mapping[str, int] | None) -> np.ndarray:
    """Return the index of the type of each rank's node. `types` holds the number of nodes of each
    type."""
    bounds = np.cumsum(list(types.values())) if types else np.array([np.iinfo(int).max])
    rank_type = np.searchsorted(bounds, node, side="right")
    if rank_type.size and rank_type.max() >= len(bounds):
        raise UserError(f"the parameters are for {bounds[-1]} nodes, this placement has more")
    return rank_type


def select_by_channel(schedule: Schedule, values: Values, name: str) -> Array:
    """Return the value of each row's channel: `L.within` a node or `L.between` nodes."""
    if "channels" not in schedule.cache:
        schedule.cache["channels"] = np.unique(schedule.channel, return_inverse=True)
    channels, channel_of = schedule.cache["channels"]
    names = ["within" if channel == MEMORY else "between" for channel in channels]
    return _arrange_by_row(values, name, names, channel_of)


def _arrange_by_row(
    values: Values, name: str, types_or_pairs: Sequence[str | Pair], index: np.ndarray
) -> Array:
    if not types_or_pairs:
        return np.zeros((*values.draw_shape, len(index)))
    columns = [find_value(values, name, type_or_pair) for type_or_pair in types_or_pairs]
    if all(column is columns[0] for column in columns):
        return np.broadcast_to(columns[0], (*values.draw_shape, len(index)))
    return np.concatenate(
        [np.broadcast_to(column, (*values.draw_shape, 1)) for column in columns], axis=-1
    )[..., index]


def select_pair_values(values: Values, type_or_pair: str | Pair) -> Values:
    """Return the values of a pair's distance class."""
    return (
        values.of_class(type_or_pair.distance_class) if isinstance(type_or_pair, Pair) else values
    )


def find_value(values: Values, name: str, type_or_pair: str | Pair) -> Array:
    """Return the value of a type, a channel or a pair."""
    return values[find_value_name(values.numbers.__contains__, name, type_or_pair)]


def find_value_name(exists: Callable[[str], bool], name: str, type_or_pair: str | Pair) -> str:
    """Return the name of the value of a type, a channel or a pair. The types of a pair may be named
    in either order."""
    names = [make_key(name, type_or_pair), name]
    if isinstance(type_or_pair, Pair) and not type_or_pair.within:
        names.insert(1, make_key(name, type_or_pair.receiver_type, type_or_pair.sender_type))
    if not any(map(exists, names)):
        raise UserError(f"the parameters have no {name} for {type_or_pair}")
    return next(filter(exists, names))


@dataclass(frozen=True, eq=False)
class Classes:
    """The distance classes of a schedule's messages."""

    distance: np.ndarray  # class of each message
    rows: dict[int, np.ndarray]  # messages of each class that occurs
    levels: Hierarchy

    @classmethod
    def of(cls, schedule: Schedule, levels: Hierarchy) -> "Classes":
        distances = levels.distance(schedule.node[schedule.src], schedule.node[schedule.dst])
        occurring = np.flatnonzero(np.bincount(distances)).tolist()
        return cls(
            distances,
            {distance: np.flatnonzero(distances == distance) for distance in occurring},
            levels,
        )

    def column(self, name: str, bytes: np.ndarray, values: Values) -> Array:
        """Return a function of every message's class: (draws, rows), or (sizes, draws, rows).

        A class without a function of its own takes the plain one.
        """
        leading_shape = np.broadcast_shapes(values.draw_shape, bytes.shape[:-1])
        column = np.zeros((*leading_shape, len(self.distance)))
        for distance, rows in self.rows.items():
            function = make_key(name, self.levels.names[distance])
            if function not in values.functions:
                function = name
            if function not in values.functions:
                raise UserError(f"not probed: ranks in {self.levels.crossed(distance)}")
            column[..., rows] = values.at_or_last(function, bytes[..., rows])
        return column
