"""How one value reads, the same in every writer."""

import math

import numpy as np
import pandas as pd

from commodel.errors import one_line

LONGEST_TEXT = 2000


def plain(value: object) -> object:
    """A value from a frame or a YAML file as None, bool, int, float or safe one-line text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value) if abs(int(value)) < 2**53 else str(int(value))
    if isinstance(value, float | np.floating):
        return float(value)
    return one_line(value, LONGEST_TEXT)


def finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def comparable(value: object) -> bool:
    """A number that has a place on a scale: infinity has, n/a has not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def number_format(kind: str, value: float) -> str:
    """The spreadsheet format of one number; `show` prints the same digits."""
    if kind in ("count", "figure"):
        return "#,##0"
    if kind == "percent":
        return "#,##0.0"
    if kind == "signed":
        return "+#,##0.0;-#,##0.0;0.0"
    if kind == "ratio":
        return "0.000"
    if kind == "times":
        return "#,##0.00"
    size = abs(value)
    if size and not 1e-3 <= size < 1e9:
        return "0.000E+00"
    digits = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return "#,##0." + "0" * digits if digits else "#,##0"


def show(kind: str, value: object) -> str:
    """One value as the reader sees it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    form = number_format(kind, value)
    if "E" in form:
        return f"{value:.3e}".upper()
    digits = len(form.split(";")[0].partition(".")[2])
    text = f"{value:,.{digits}f}"
    if kind == "signed":
        return "0.0" if value == 0 else f"{value:+,.1f}"
    return text


def about(value: float) -> str:
    """A value that the data do not determine, to one digit: `≈ 3`."""
    return f"≈ {float(f'{value:.0e}'):,.15g}".upper() if math.isfinite(value) else show("number", value)
