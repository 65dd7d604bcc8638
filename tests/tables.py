"""Compare tables of found and expected values: a test checks all rows and reports every wrong one."""

from collections.abc import Iterable

import pytest


def agree(rows: Iterable[tuple[object, float, float]], **tolerance: float) -> None:
    """Check rows (name, found, wanted) and report all that differ."""
    wrong = [
        f"{name}: found {found}, wanted {wanted}"
        for name, found, wanted in rows
        if found != pytest.approx(wanted, **tolerance)
    ]
    assert not wrong, "\n".join(wrong)
