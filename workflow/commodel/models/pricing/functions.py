"""Parameters that depend on something: forms with named coefficients, and functions given by samples.

A coefficient of function `o` is called `o.a`, a sample `o.64` (at 64), a sample of a surface `o.64x3` (at 64, three at
a time). Values broadcast over (draws, rows); arguments over (rows) or (sizes, 1, rows).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError

KNOT = re.compile(r"([0-9]{1,18})(?:x([0-9]{1,9}))?")
PIECE = re.compile(r"[ab][0-9]{0,9}|x[1-9][0-9]{0,8}")
PIECEWISE, TABLE = "piecewise", "table"


@dataclass(frozen=True)
class Form:
    """f(x) = a + shape(x); `coefficients` names what the shape takes, beside `a`. `units` of them: u is the function's
    unit, x its argument's."""

    coefficients: tuple[str, ...]
    shape: Callable[..., np.ndarray]
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


def takes(form: str, letter: str) -> bool:
    """Whether a function of this form has a coefficient, or a sample, of that name."""
    if form == TABLE:
        return KNOT.fullmatch(letter) is not None
    if form == PIECEWISE:
        return PIECE.fullmatch(letter) is not None
    return letter == "a" or letter in FORMS[form].coefficients


def evaluate(form: str, name: str, values: Mapping[str, np.ndarray], x) -> np.ndarray:
    """The function called `name` at `x`; its coefficients or samples are found in `values`."""
    if form == TABLE:
        return Samples(name, values).at(np.asarray(x))
    if form == PIECEWISE:
        return _piecewise(name, values, np.asarray(x))
    shape = FORMS[form]
    return values[f"{name}.a"] + shape.shape(x, *(values[f"{name}.{letter}"] for letter in shape.coefficients))


def _piecewise(name: str, values: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Up to and including an edge the piece before it holds."""
    found = values[f"{name}.a"] + values.get(f"{name}.b", 0.0) * x
    number = 1
    while f"{name}.x{number}" in values:
        piece = values[f"{name}.a{number}"] + values.get(f"{name}.b{number}", 0.0) * x
        found = np.where(x > values[f"{name}.x{number}"], piece, found)
        number += 1
    return found


class Samples:
    """A function given by samples. Linear between them, constant below the first, and beyond the last as steep as
    between the last two. A surface is linear between its levels too; beyond the highest, each of so many at once takes
    its share: in proportion."""

    def __init__(self, name: str, values: Mapping[str, np.ndarray]):
        found = [KNOT.fullmatch(key[len(name) + 1 :]) for key in values if key.startswith(f"{name}.")]
        places = sorted({int(match[1]) for match in found if match})
        self.levels = sorted({int(match[2]) for match in found if match and match[2]})
        if not places:
            raise UserError(f"found no sample of {name}, wanted {name}.SIZE")
        self.places = np.array(places, dtype=float)
        try:
            self.columns = [
                np.concatenate([values[f"{name}.{place}{end}"] for place in places], axis=-1)  # (draws, places)
                for end in ([f"x{level}" for level in self.levels] or [""])
            ]
        except KeyError as missing:
            raise UserError(f"found no sample {missing.args[0]}, wanted one at every size") from None

    def at(self, x: np.ndarray, level=None) -> np.ndarray:
        if not self.levels:
            return self._between(self.columns[0], x) * (1 if level is None else level)
        levels = self.levels
        level = np.broadcast_to(1 if level is None else level, x.shape)
        inside = np.clip(level, levels[0], levels[-1])
        found = 0.0
        for number, column in enumerate(self.columns):
            low = levels[max(number - 1, 0)]
            high = levels[min(number + 1, len(levels) - 1)]
            here = levels[number]
            share = np.where(inside == here, 1.0, 0.0)
            share = np.where((inside > low) & (inside < here), (inside - low) / max(here - low, 1), share)
            share = np.where((inside > here) & (inside < high), (high - inside) / max(high - here, 1), share)
            if share.any():
                found = found + share * self._between(column, x)
        return found * np.maximum(level / levels[-1], 1.0)

    def _between(self, column: np.ndarray, x: np.ndarray) -> np.ndarray:
        places = self.places
        if len(places) == 1:
            return column + 0.0 * x
        left = np.clip(np.searchsorted(places, x, side="right") - 1, 0, len(places) - 2)
        share = np.maximum((x - places[left]) / (places[left + 1] - places[left]), 0.0)
        low, high = _take(column, left), _take(column, left + 1)
        rise = np.where(share > 1, np.maximum(high - low, 0.0), high - low)
        return np.where(share > 1, high + (share - 1) * rise, low + share * rise)


def _take(column: np.ndarray, index: np.ndarray) -> np.ndarray:
    """(draws, places) at (rows) or (sizes, 1, rows): (draws, rows) or (sizes, draws, rows)."""
    found = column[..., index]
    return found if index.ndim <= 1 else np.moveaxis(found[..., 0, :], 0, 1)


def coefficient_unit(form: str, letters: str, unit: str, argument: str) -> str:
    """The unit of a coefficient, e.g. of `b` of a line; `argument` is the unit of x, empty where x only counts."""
    if form == TABLE or letters == "a":
        return unit
    if form == PIECEWISE:
        pattern = {"b": "u/x", "x": "x"}.get(letters[:1], "u")
    else:
        names = dict(zip(FORMS[form].coefficients, FORMS[form].units, strict=True))
        pattern = names.get(letters, "u")
    if not argument:
        pattern = {"u/x": "u", "u/x²": "u", "u·x": "u", "x": "1", "1/x": "1"}.get(pattern, pattern)
    return pattern.replace("x", argument).replace("u", unit) if pattern != "u" else unit
