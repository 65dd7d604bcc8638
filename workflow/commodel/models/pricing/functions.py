"""Parameters that depend on something: forms with named coefficients, and functions given by samples.

A coefficient of function `o` is called `o.a`, a sample `o.64` (see `keys`). Values broadcast over (draws, rows);
arguments over (rows) or (sizes, 1, rows).
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.keys import key, parse, sample

PIECE = re.compile(r"[ab]|[abx]([1-9][0-9]{0,3})")
PIECEWISE, TABLE = "piecewise", "table"


@dataclass(frozen=True)
class Form:
    """f(x) = a + shape(x); `coefficients` names what the shape takes, beside `a`. `units` of them: u is the function's
    unit, x its argument's."""

    coefficients: tuple[str, ...]
    shape: Callable[..., Array]
    text: str
    units: tuple[str, ...]


FORMS = {
    "constant": Form((), lambda x: 0.0 * x, "a", ()),
    "linear": Form(("b",), lambda x, b: b * x, "a + b·x", ("u/x",)),
    "logarithmic": Form(("b",), lambda x, b: b * np.log(x), "a + b·ln x", ("u",)),
    "quadratic": Form(("b", "c"), lambda x, b, c: b * x + c * x**2, "a + b·x + c·x²", ("u/x", "u/x²")),
    "exponential": Form(("b", "c"), lambda x, b, c: b * np.expm1(c * x), "a + b·(exp(c·x) − 1)", ("u", "1/x")),
    "pipeline": Form(("b", "c"), lambda x, b, c: b / (c + x), "a + b/(c + x)", ("u·x", "x")),
    "saturating": Form(
        ("b", "c", "d", "e", "f"),
        lambda x, b, c, d, e, f: b / (c + x) - d * np.expm1(e * (x - f)),
        "a + b/(c + x) + d·(1 − exp(e·(x − f)))",
        ("u·x", "x", "u", "1/x", "x"),
    ),
}
FORM_NAMES = (*FORMS, PIECEWISE, TABLE)


def text(form: str) -> str:
    """How a form is written."""
    if form == PIECEWISE:
        return "a + b·x, from x1 on a1 + b1·x, …"
    return "samples, linear in between" if form == TABLE else FORMS[form].text


def takes(form: str, name: str) -> bool:
    """Whether a function of this form has the value called so: one of its coefficients, or a sample."""
    _, _, part = parsed = parse(name)
    if form == TABLE:
        return parsed.sample is not None
    if form == PIECEWISE:
        return PIECE.fullmatch(part) is not None
    return part == "a" or part in FORMS[form].coefficients


def needed(form: str, name: str, values: Collection[str]) -> list[str]:
    """The coefficients that the function called `name` must have. A piece has an edge and a height, and the pieces are
    numbered from 1."""
    if form == TABLE:
        return []
    if form != PIECEWISE:
        return ["a", *FORMS[form].coefficients]
    numbers = [PIECE.fullmatch(parse(value).part) for value in values if parse(value).function == name]
    pieces = max((int(match[1]) for match in numbers if match and match[1]), default=0)
    return ["a", *(f"{letter}{number}" for number in range(1, pieces + 1) for letter in "xa")]


def evaluate(form: str, name: str, values: Mapping[str, Array], x: ArrayLike) -> Array:
    """The function called `name` at `x`; its coefficients or samples are found in `values`."""
    x = np.asarray(x)
    if form == TABLE:
        return Samples(name, values).at(x)
    if form == PIECEWISE:
        return _piecewise(name, values, x)
    coefficients = (values[key(name, letter)] for letter in FORMS[form].coefficients)
    return values[key(name, "a")] + FORMS[form].shape(x, *coefficients)


def _piecewise(name: str, values: Mapping[str, Array], x: Array) -> Array:
    """Up to and including an edge the piece before it holds."""
    result = values[key(name, "a")] + values.get(key(name, "b"), 0.0) * x
    number = 1
    while (edge := key(name, f"x{number}")) in values:
        piece = values[key(name, f"a{number}")] + values.get(key(name, f"b{number}"), 0.0) * x
        result = np.where(x > values[edge], piece, result)
        number += 1
    return result


class Samples:
    """A function given by samples. Linear between them, constant below the first, and beyond the last as steep as
    between the last two. A surface is linear between its levels too; beyond the highest, each of so many at once takes
    its share: in proportion."""

    def __init__(self, name: str, values: Mapping[str, Array]) -> None:
        known = [parsed.sample for parsed in map(parse, values) if parsed.function == name and parsed.sample]
        places = sorted({place for place, _ in known})
        self.levels = sorted({level for _, level in known if level is not None})
        if not places:
            raise UserError(f"found no sample of {name}, wanted {name}.SIZE")
        self.places = np.array(places, dtype=float)
        try:
            self.columns = [
                np.concatenate([values[sample(name, place, level)] for place in places], axis=-1)  # (draws, places)
                for level in self.levels or [None]
            ]
        except KeyError as missing:
            raise UserError(f"found no sample {missing.args[0]}, wanted one at every size") from None

    def at(self, x: Array, level: ArrayLike | None = None) -> Array:
        if not self.levels:
            return self._between(self.columns[0], x) * (1 if level is None else level)
        level = np.broadcast_to(1 if level is None else level, x.shape)
        total = 0.0
        for column, only in zip(self.columns, np.eye(len(self.levels)), strict=True):
            share = np.interp(level, self.levels, only)  # 1 at the level of this column, 0 at all others
            if share.any():
                total = total + share * self._between(column, x)
        return total * np.maximum(level / self.levels[-1], 1.0)

    def _between(self, column: Array, x: Array) -> Array:
        places = self.places
        if len(places) == 1:
            return column + 0.0 * x
        left = np.clip(np.searchsorted(places, x, side="right") - 1, 0, len(places) - 2)
        share = np.maximum((x - places[left]) / (places[left + 1] - places[left]), 0.0)
        low, high = _take(column, left), _take(column, left + 1)
        rise = np.where(share > 1, np.maximum(high - low, 0.0), high - low)
        return np.where(share > 1, high + (share - 1) * rise, low + share * rise)


def _take(column: Array, index: np.ndarray) -> Array:
    """(draws, places) at (rows) or (sizes, 1, rows): (draws, rows) or (sizes, draws, rows)."""
    taken = column[..., index]
    return taken if index.ndim <= 1 else np.moveaxis(taken[..., 0, :], 0, 1)


def coefficient_unit(form: str, name: str, unit: str, argument: str) -> str:
    """The unit of a function's value, e.g. of `o.b` of a line; `argument` is the unit of x, empty where x only
    counts."""
    part = parse(name).part
    if form == TABLE or part == "a":
        return unit
    if form == PIECEWISE:
        pattern = {"b": "u/x", "x": "x"}.get(part[:1], "u")
    else:
        pattern = dict(zip(FORMS[form].coefficients, FORMS[form].units, strict=True)).get(part, "u")
    if not argument:
        pattern = {"u/x": "u", "u/x²": "u", "u·x": "u", "x": "1", "1/x": "1"}.get(pattern, pattern)
    return pattern.replace("x", argument).replace("u", unit)
