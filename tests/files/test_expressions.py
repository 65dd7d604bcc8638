import math
import timeit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files import expressions

NAMES = ("ranks", "nodes", "bytes", "algorithm", "topology")
VALUES = {"ranks": 12, "nodes": 4, "bytes": 1024, "algorithm": "ring", "topology": ""}


@pytest.mark.parametrize(
    "text",
    [
        "algorithm == 'recursive-doubling' and not is_power_of_two(ranks)",
        "algorithm == 'ring' and not is_power_of_two(ranks)",
        "1 < ranks <= 12 != nodes",
        "12 > ranks > nodes",
        "ranks in [4, 12]",
        "nodes not in (4, 12)",
        "ranks % 2 == 1 or nodes // 3 == 1",
        "log2(bytes) == 10",
        "min(ranks, nodes, 3) + max(ranks, nodes) * 2 - abs(-nodes) / 2",
        "bytes > 1e3 and True",
        "-ranks < +nodes",
        "'ing' in algorithm",
        "(ranks < 2) + 1",
    ],
)
def test_expressions_evaluate_as_in_python(text):
    def is_power_of_two(n):
        return n > 0 and n & (n - 1) == 0

    wanted = eval(text, {"is_power_of_two": is_power_of_two, "log2": math.log2}, VALUES)
    assert expressions.parse_expression(text, NAMES)(VALUES) == wanted
    assert expressions.parse_expression(text, NAMES).text == text


REFUSED = [
    "",
    " ",
    "rank > 2",
    "__import__('os').system('true')",
    "().__class__",
    "ranks.bit_length()",
    "[x for x in [1]]",
    "(lambda: 1)()",
    "ranks ** 9",
    "2 ** 2 ** 99",
    "'a' * 1000000000",
    "1000000000 * 'a'",
    "'%999999999d' % ranks",
    "'a' + 'b'",
    "f'{ranks}'",
    "ranks if nodes else 1",
    "ranks := 2",
    "ranks[0]",
    "{1: 2}",
    "{1}",
    "b'a' == 1",
    "1j",
    "None",
    "...",
    "ranks << 99",
    "~ranks",
    "ranks @ nodes",
    "ranks is 2",
    "ranks in 'abc'",
    "ranks in 4",
    "print(1)",
    "open('x')",
    "log2(1, 2)",
    "log2()",
    "max(*[1])",
    "max(ranks, key=ranks)",
    "min(ranks)",
    "ranks > 2; nodes",
    "ranks >",
    "ranks > 2\nnodes",
    "'\\x41' == algorithm",
    "ranks\0",
    "(" * 240 + "1" + ")" * 240,
    "not " * 100 + "1",
    "-" * 400 + "1",
    "1" + "+1" * 240,
    "1 or " * 100 + "2" * 10,
    "1" * 501,
    "import os",
    "yield 1",
    "await ranks",
    "*ranks",
]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:25])
def test_refused_when_parsed(text):
    with pytest.raises(UserError) as caught:
        expressions.parse_expression(text, NAMES)
    assert "\n" not in caught.value.message


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UserError, match="unknown name 'rank'; did you mean 'ranks'"):
        expressions.parse_expression("rank > 2", NAMES)
    with pytest.raises(
        UserError, match="unknown function 'is_power_of_2'; did you mean 'is_power_of_two'"
    ):
        expressions.parse_expression("is_power_of_2(ranks)", NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "ranks < algorithm",
        "algorithm * 1000000000",
        "ranks * algorithm",
        "algorithm % 5",
        "ranks / (nodes - 4)",
        "ranks % 0",
        "log2(0)",
        "log2(algorithm)",
        "is_power_of_two(algorithm)",
        "min(ranks, algorithm)",
        "is_power_of_two(1e999)",
        "-algorithm",
        "ranks in nodes",
        "topology + 1",
    ],
)
def test_refused_when_evaluated_names_the_expression(text):
    expression = expressions.parse_expression(text, NAMES)
    with pytest.raises(UserError) as caught:
        expression(VALUES)
    assert text in caught.value.message
    assert "\n" not in caught.value.message


def test_missing_and_empty_values():
    with pytest.raises(UserError, match="'nodes' has no value"):
        expressions.parse_expression("nodes > 1", NAMES)({"ranks": 1})
    with pytest.raises(UserError, match="cannot be evaluated"):
        expressions.parse_expression("nodes > 1", NAMES)({"nodes": None})
    assert expressions.parse_expression("ranks == 1 or nodes > 1", NAMES)({"ranks": 1}) is True


@settings(deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ranksbyte()[]'\"<>=!+-*/%, .0123456789:{}_\\"), max_size=60)
    | st.text()
)
def test_any_text_is_an_expression_or_a_user_error(text):
    try:
        expressions.parse_expression(text, NAMES)(VALUES)
        message = ""
    except UserError as error:
        message = error.message
    assert "\n" not in message


numbers = st.integers(-50, 50).map(str) | st.sampled_from(["ranks", "nodes", "bytes"])
arithmetic = st.recursive(
    numbers,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/%"), inner).map(
        lambda t: f"({t[0]} {t[1]} {t[2]})"
    ),
)


@settings(deadline=None)
@given(arithmetic, st.sampled_from(["<", "<=", "==", "!=", ">"]), arithmetic)
def test_arithmetic_is_pythons(left, sign, right):
    text = f"{left} {sign} {right}"
    if len(text) > expressions.MAX_LENGTH:
        return
    try:
        wanted = eval(text, {}, VALUES)
    except ArithmeticError:
        wanted = UserError
    try:
        result = expressions.parse_expression(text, NAMES)(VALUES)
    except UserError as error:
        result = wanted if "nested too deeply" in error.message else UserError
    assert result == wanted


def test_about_as_fast_as_python():
    """A matrix has up to 100 000 combinations, which `eval` of Python filters in about 0.1 s. The
    limit is 20 times that."""
    text = "algorithm == 'ring' or bytes // nodes > 1000 or ranks + nodes * 2 < bytes"
    expression, compiled = expressions.parse_expression(text, NAMES), compile(text, "own", "eval")
    ours = min(timeit.repeat(lambda: expression(VALUES), number=2000, repeat=5))
    pythons = min(timeit.repeat(lambda: eval(compiled, VALUES), number=2000, repeat=5))
    assert ours < 20 * pythons
