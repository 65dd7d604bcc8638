"""Tables of what is found and what is wanted: a test goes through all rows, and tells every one that is wrong."""

from collections.abc import Iterable

import pytest


def agree(rows: Iterable[tuple[object, float, float]], **tolerance: float) -> None:
    """Rows are (name, found, wanted)."""
    wrong = [
        f"{name}: found {found}, wanted {wanted}"
        for name, found, wanted in rows
        if found != pytest.approx(wanted, **tolerance)
    ]
    assert not wrong, "\n".join(wrong)
