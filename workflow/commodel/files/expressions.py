"""The small language of `exclude: [{where: …}]`: comparisons and arithmetic over the names of a matrix.

Text is parsed with `ast`, every node is checked against a white list and becomes a closure; nothing is ever executed.
"""

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from commodel.errors import UserError, one_line, suggest

MAX_LENGTH = 500
MAX_DEPTH = 50

Value = bool | int | float | str | None | tuple
Closure = Callable[[Mapping[str, Value]], Value]


@dataclass(frozen=True)
class Expression:
    """Call it with the values of its names."""

    text: str
    closure: Closure = field(repr=False, compare=False)

    def __call__(self, values: Mapping[str, Value]) -> Value:
        try:
            return self.closure(values)
        except KeyError as error:
            raise UserError(f"'{one_line(self.text)}': {error} has no value here") from None
        except (TypeError, ValueError, ArithmeticError) as error:
            raise UserError(f"'{one_line(self.text)}' cannot be worked out: {error}") from None


def _numeric(function: Callable) -> Callable:
    """The same for numbers only: `'ab' * 1000000000` and `'%999999999d' % 1` would fill the memory."""

    def checked(*operands):
        for operand in operands:
            if not isinstance(operand, int | float):
                raise TypeError(f"{_kind(operand)} where a number is wanted")
        return function(*operands)

    return checked


def _kind(value: Value) -> str:
    return "nothing" if value is None else f"'{one_line(value, 60)}'"


def is_power_of_two(number: float) -> bool:
    whole = int(number)
    return whole == number and whole > 0 and whole & (whole - 1) == 0


FUNCTIONS = {
    "is_power_of_two": (_numeric(is_power_of_two), 1, 1),
    "log2": (_numeric(math.log2), 1, 1),
    "min": (_numeric(min), 2, 100),
    "max": (_numeric(max), 2, 100),
    "abs": (_numeric(abs), 1, 1),
}
ARITHMETIC = {
    ast.Add: _numeric(operator.add),
    ast.Sub: _numeric(operator.sub),
    ast.Mult: _numeric(operator.mul),
    ast.Div: _numeric(operator.truediv),
    ast.FloorDiv: _numeric(operator.floordiv),
    ast.Mod: _numeric(operator.mod),
}
COMPARISONS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
SIGNS = {ast.USub: _numeric(operator.neg), ast.UAdd: _numeric(operator.pos), ast.Not: operator.not_}


def parse(text: str, names: Iterable[str]) -> Expression:
    """An expression over `names`, or a UserError that says which part of it is not one."""
    if len(text) > MAX_LENGTH:
        raise UserError(f"found an expression of {len(text)} characters, wanted at most {MAX_LENGTH}")
    if "\\" in text or not text.strip().isprintable():
        raise UserError(f"'{one_line(text)}' holds a character that expressions do not use")
    try:
        with warnings.catch_warnings():  # the parser warns about `1and 2` on stderr
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise UserError(f"'{one_line(text)}' is not an expression: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError):
        raise UserError(f"'{one_line(text)}' is not an expression: nested too deeply") from None
    return Expression(text.strip(), _compile(tree.body, frozenset(names), text, MAX_DEPTH))


def _compile(node: ast.AST, names: frozenset[str], text: str, depth: int) -> Closure:
    def inner(child: ast.AST) -> Closure:
        return _compile(child, names, text, depth - 1)

    def refuse(why: str) -> UserError:
        return UserError(f"'{one_line(text)}': {why}")

    if depth == 0:
        raise refuse("nested too deeply")
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return lambda values: value
        case ast.Name(id=name):
            if name not in names:
                raise refuse(f"unknown name '{one_line(name, 60)}'; {suggest(name, names)}")
            return operator.itemgetter(name)
        case ast.BoolOp(op=sign, values=parts):
            return _any_or_all(isinstance(sign, ast.Or), [inner(part) for part in parts])
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in SIGNS:
            apply, value_of = SIGNS[type(sign)], inner(operand)
            return lambda values: apply(value_of(values))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in ARITHMETIC:
            if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (left, right)):
                raise refuse("text cannot be calculated with")
            apply, first, second = ARITHMETIC[type(sign)], inner(left), inner(right)
            return lambda values: apply(first(values), second(values))
        case ast.Compare(left=left, ops=signs, comparators=rights) if all(type(sign) in COMPARISONS for sign in signs):
            for sign, right in zip(signs, rights, strict=True):
                if isinstance(sign, ast.In | ast.NotIn) and not isinstance(right, ast.List | ast.Tuple | ast.Name):
                    raise refuse("wanted a list such as [2, 4] after 'in'")
            return _chain(inner(left), [(COMPARISONS[type(s)], inner(r)) for s, r in zip(signs, rights, strict=True)])
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            closures = [inner(part) for part in parts]
            return lambda values: tuple(closure(values) for closure in closures)
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
            if name not in FUNCTIONS:
                raise refuse(f"unknown function '{one_line(name, 60)}'; {suggest(name, FUNCTIONS)}")
            function, fewest, most = FUNCTIONS[name]
            if not fewest <= len(parts) <= most:
                raise refuse(f"found {len(parts)} values for {name}(), wanted {fewest}{' or more' * (most > fewest)}")
            closures = [inner(part) for part in parts]
            return lambda values: function(*[closure(values) for closure in closures])
    raise refuse(f"found {_words(node)}, wanted comparisons, + - * / // %, and, or, not, in, {', '.join(FUNCTIONS)}")


def _any_or_all(wanted: bool, closures: list[Closure]) -> Closure:
    """`or` ends at the first true part, `and` at the first false one."""

    def decided(values: Mapping[str, Value]) -> bool:
        for closure in closures:  # a generator would take three times as long, for every combination
            if bool(closure(values)) is wanted:
                return wanted
        return not wanted

    return decided


def _chain(left: Closure, rights: list[tuple[Callable, Closure]]) -> Closure:
    """left < a < b, each side worked out once and none after the first that fails."""
    if len(rights) == 1:
        compare, right = rights[0]
        return lambda values: compare(left(values), right(values))

    def chained(values: Mapping[str, Value]) -> bool:
        low = left(values)
        for compare, right in rights:
            high = right(values)
            if not compare(low, high):
                return False
            low = high
        return True

    return chained


def _words(node: ast.AST) -> str:
    """The offending part as it was written, or its kind where it cannot be written back."""
    try:
        return f"'{one_line(ast.unparse(node), 60)}'"
    except (ValueError, RecursionError):
        return type(node).__name__.lower()
