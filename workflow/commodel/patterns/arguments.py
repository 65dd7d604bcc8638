"""Numbers in what stands after the colon of an algorithm's, a layout's or a topology's name."""

from commodel.errors import UserError
from commodel.units import parse_count

DIGITS = 8  # of a number at most: nothing here counts more than that


def whole_number(text: str, wanted: str = "a whole number from 1", least: int = 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS and int(text) >= least):
        raise UserError(f"found '{text}', wanted {wanted}")
    return int(text)


def whole_numbers(text: str, separator: str, wanted: str) -> list[int]:
    """Numbers from 1 with a separator between them, e.g. 4x4."""
    try:
        return [whole_number(part) for part in text.split(separator)]
    except UserError:
        raise UserError(f"found '{text}', wanted {wanted}") from None


def before_nodes(text: str, form: str) -> tuple[str, int]:
    """What stands before the '@', and the number of nodes after it."""
    before, at, nodes = text.partition("@")
    if not at:
        raise UserError(f"found '{text}', wanted {form}")
    return before, whole_number(nodes, form)


def with_seed(text: str, form: str) -> tuple[int, int]:
    """The number before the '@', and the seed after it."""
    number, _, seed = text.partition("@")
    try:
        return whole_number(number, form), parse_count(seed, 0, 2**63 - 1)
    except UserError:
        name = form.partition(":")[0]
        raise UserError(f"found '{name}:{text}', wanted {form}, a whole number of 0 or more as seed") from None
