"""Parameters that depend on something: a form with named coefficients, always a(constant) plus a shape without one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Form:
    """f(x) = a + shape(x); `coefficients` names what the shape takes, beside `a`."""

    coefficients: tuple[str, ...]
    shape: Callable[..., np.ndarray]
    text: str


FORMS = {
    "constant": Form((), lambda x: 0.0 * x, "a"),
    "linear": Form(("b",), lambda x, b: b * x, "a + b·x"),
    "logarithmic": Form(("b",), lambda x, b: b * np.log(x), "a + b·ln x"),
    "quadratic": Form(("b", "c"), lambda x, b, c: b * x + c * x**2, "a + b·x + c·x²"),
    "exponential": Form(("b", "c"), lambda x, b, c: b * np.expm1(c * x), "a + b·(exp(c·x) − 1)"),
}


def evaluate(form: str, name: str, values: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The function called `name`, its coefficients found in `values` as `name.a`, `name.b`, …"""
    shape = FORMS[form]
    return values[f"{name}.a"] + shape.shape(x, *(values[f"{name}.{letter}"] for letter in shape.coefficients))
