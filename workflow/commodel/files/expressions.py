"""Expressions of `exclude: [{where: …}]`: comparisons and arithmetic over the names of a matrix
(`parse`).

A text is parsed with `ast`, and every node is checked against a white list before the tree is
compiled. Arithmetic becomes calls of functions that accept numbers only: `'ab' * 1000000000` and
`'%999999999d' % 1` would fill the memory.
"""

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from commodel.errors import UserError, make_printable, suggest_name

MAX_LENGTH = 500
MAX_DEPTH = 50

Value = bool | int | float | str | None | tuple[Any, ...]


def is_power_of_two(number: float) -> bool:
    integer = int(number)
    return integer == number and integer > 0 and integer & (integer - 1) == 0


def _accept_only_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*operands: object) -> Any:
        for operand in operands:
            if not isinstance(operand, int | float):
                found = "nothing" if operand is None else f"'{make_printable(operand, 60)}'"
                raise TypeError(f"{found} where a number is wanted")
        return function(*operands)

    return checked


# with the fewest and the most arguments
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "is_power_of_two": (is_power_of_two, 1, 1),
    "log2": (math.log2, 1, 1),
    "min": (min, 2, 100),
    "max": (max, 2, 100),
    "abs": (abs, 1, 1),
}
ARITHMETIC: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
CALLABLE: dict[str, Any] = {"__builtins__": {}}
CALLABLE |= {name: _accept_only_numbers(function) for name, (function, _, _) in FUNCTIONS.items()}
CALLABLE |= {sign.__name__: _accept_only_numbers(function) for sign, function in ARITHMETIC.items()}


@dataclass(frozen=True)
class Expression:
    """An expression. Calling it with the values of its names returns its value."""

    text: str
    code: CodeType = field(repr=False, compare=False)

    def __call__(self, values: Mapping[str, Value]) -> Value:
        try:
            return eval(self.code, CALLABLE, values)  # noqa: S307  all nodes are on the white list
        except NameError as error:
            raise UserError(
                f"'{make_printable(self.text)}': '{error.name}' has no value here"
            ) from None
        except (TypeError, ValueError, ArithmeticError) as error:
            raise UserError(f"'{make_printable(self.text)}' cannot be evaluated: {error}") from None


def parse_expression(text: str, names: Iterable[str]) -> Expression:
    """Return the expression over `names` in a text; raise a UserError that names the part that is
    not allowed."""
    if len(text) > MAX_LENGTH:
        raise UserError(
            f"found an expression of {len(text)} characters, wanted at most {MAX_LENGTH}"
        )
    if "\\" in text or not text.strip().isprintable():
        raise UserError(f"'{make_printable(text)}' has a character that expressions do not use")
    try:
        # the parser warns about `1and 2` on stderr, the compiler about `2 == 'a'`
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
            tree.body = _check_node(tree.body, frozenset(names), text, MAX_DEPTH)
            return Expression(
                text.strip(), compile(ast.fix_missing_locations(tree), "expression", "eval")
            )
    except SyntaxError as error:
        raise UserError(f"'{make_printable(text)}' is not an expression: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError):
        raise UserError(
            f"'{make_printable(text)}' is not an expression: nested too deeply"
        ) from None


def _check_node(node: ast.expr, names: frozenset[str], text: str, depth: int) -> ast.expr:
    """Return a node of the white list, with calls in place of arithmetic; refuse any other node."""

    def inner(*children: ast.expr) -> list[ast.expr]:
        return [_check_node(child, names, text, depth - 1) for child in children]

    def call(name: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(name, ast.Load()), inner(*arguments), [])

    def refuse(why: str) -> UserError:
        return UserError(f"'{make_printable(text)}': {why}")

    if depth == 0:
        raise refuse("nested too deeply")
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return node
        case ast.Name(id=name):
            if name not in names:
                raise refuse(
                    f"unknown name '{make_printable(name, 60)}'; {suggest_name(name, names)}"
                )
            return node
        case ast.BoolOp(op=sign, values=parts):
            return ast.BoolOp(sign, inner(*parts))
        case ast.UnaryOp(op=ast.Not() as sign, operand=operand):
            return ast.UnaryOp(sign, inner(operand)[0])
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in ARITHMETIC:
            return call(type(sign).__name__, operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in ARITHMETIC:
            if any(
                isinstance(side, ast.Constant) and isinstance(side.value, str)
                for side in (left, right)
            ):
                raise refuse("text cannot be calculated with")
            return call(type(sign).__name__, left, right)
        case ast.Compare(left=left, ops=signs, comparators=rights) if all(
            type(sign) in COMPARISONS for sign in signs
        ):
            for comparison, right in zip(signs, rights, strict=True):
                if isinstance(comparison, ast.In | ast.NotIn) and not isinstance(
                    right, ast.List | ast.Tuple | ast.Name
                ):
                    raise refuse("wanted a list such as [2, 4] after 'in'")
            return ast.Compare(inner(left)[0], signs, inner(*rights))
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return ast.Tuple(inner(*parts), ast.Load())
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
            if name not in FUNCTIONS:
                raise refuse(
                    f"unknown function '{make_printable(name, 60)}'; {suggest_name(name, FUNCTIONS)}"
                )
            _, min_count, max_count = FUNCTIONS[name]
            if not min_count <= len(parts) <= max_count:
                raise refuse(
                    f"found {len(parts)} values for {name}(), wanted {min_count}{' or more' * (max_count > min_count)}"
                )
            return call(name, *parts)
    try:
        found = f"'{make_printable(ast.unparse(node), 60)}'"
    except (ValueError, RecursionError):
        found = type(node).__name__.lower()
    raise refuse(
        f"found {found}, wanted comparisons, + - * / // %, and, or, not, in, {', '.join(FUNCTIONS)}"
    )
