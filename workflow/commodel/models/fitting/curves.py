"""The evidence of a regression: what was measured and fitted, how well, and how well at samples left out."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from commodel.models import Array
from commodel.models.fitting.regression import aicc, line, rising
from commodel.models.pricing.functions import TABLE, text
from commodel.parameters import Curve
from commodel.stats import r_squared

SIZES = ("message / B", "time / s")  # labels of the axes of most
ROUNDING = 1e-15  # seconds: below it is nothing but the rounding of exact simulations


def curve(
    title: str,
    x: ArrayLike,
    measured: ArrayLike,
    fitted: ArrayLike,
    form: str,
    terms: int = 1,
    labels: tuple[str, str] = SIZES,
    refit: Callable[[np.ndarray], Array] | None = None,
) -> Curve:
    """The evidence of one regression with `terms` coefficients, in SI units. `refit(keep)` fits the kept samples only
    and returns its values at all of them: from it comes the error at samples that a fit has not seen."""
    x, measured, fitted = (np.asarray(column, dtype=float) for column in (x, measured, fitted))
    measured, fitted = (np.where(np.abs(column) < ROUNDING, 0.0, column) for column in (measured, fitted))
    scale = np.where(measured == 0, 1.0, measured)
    relative = (fitted - measured) / scale
    aic = aicc(float(np.mean(relative**2)), len(x), terms + 1, 1.0)
    left_out = np.nan
    if refit is not None and len(x) > terms + 1:
        errors = []
        for number in range(len(x)):
            keep = np.arange(len(x)) != number
            errors.append((refit(keep)[number] - measured[number]) / scale[number])
        left_out = float(np.sqrt(np.mean(np.square(errors))))
    points = (tuple(float(value) for value in column) for column in (x, measured, fitted))
    return Curve(title, *labels, *points, form, r_squared(measured, fitted), float(aic), left_out)


def line_curve(title: str, x: Array, y: Array, a: Array, b: Array, form: str, labels: tuple[str, str] = SIZES) -> Curve:
    """The evidence of a straight line fitted with weights 1/y²."""

    def refit(keep: np.ndarray) -> Array:
        first, slope = line(x[keep], y[:1, keep], 1 / np.maximum(y[0, keep], 1e-15) ** 2)
        return first[0] + slope[0] * x

    return curve(title, x, y[0], a[0] + b[0] * x, form, 2, labels, refit)


def sampled_curve(title: str, x: ArrayLike, y: Array, priced: Array) -> Curve:
    """The evidence of a function given by its samples: what was measured, and what prices take instead, which is the
    same but where samples that fall were levelled. Each left out, it is guessed from its neighbours."""
    x = np.asarray(x, dtype=float)
    priced = np.where(np.isclose(priced, y[0], rtol=1e-12, atol=ROUNDING), y[0], priced)
    return curve(
        title, x, y[0], priced, text(TABLE), 0, refit=lambda keep: np.interp(x, x[keep], rising(y[:, keep])[0])
    )
