"""Kinds of values that operations' named parameters have: how each is read and written."""

from collections.abc import Callable
from math import prod
from typing import Any

from commodel.errors import UserError
from commodel.patterns.arguments import whole_numbers
from commodel.patterns.operations import Parameter
from commodel.units import MAX_COUNT

MOST_DIMENSIONS = 6


def choice(name: str, names: tuple[str, ...], title: str, **more: Any) -> Parameter:
    """One of some names; left out, the first."""
    return Parameter(name, "|".join(names), f"{title}; left out, {names[0]}", one_of(names), str, names[0], **more)


def one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise UserError(f"found '{text}', wanted {', '.join(names[:-1])} or {names[-1]}")
        return text

    return read


def switch(name: str, title: str, default: bool, **more: Any) -> Parameter:
    """yes or no."""

    def write(on: bool) -> str:
        return "yes" if on else "no"

    def read(text: str) -> bool:
        if text not in ("yes", "no"):
            raise UserError(f"found '{text}', wanted yes or no")
        return text == "yes"

    return Parameter(name, "yes|no", f"{title}; left out, {write(default)}", read, write, default, **more)


def read_grid(text: str) -> tuple[int, ...]:
    grid = tuple(whole_numbers(text, "x", "numbers of ranks, such as 4x2"))
    if len(grid) > MOST_DIMENSIONS or not 2 <= prod(grid) <= MAX_COUNT:
        raise UserError(f"found '{text}', wanted at most {MOST_DIMENSIONS} numbers and 2 to {MAX_COUNT} ranks in all")
    return grid


def write_grid(grid: tuple[int, ...]) -> str:
    return "x".join(map(str, grid))
