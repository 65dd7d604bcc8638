"""The closed forms of the calculator, each written once as an expression: the workbook has it as a
formula, and `evaluate` computes it.

An expression names parameters (`o.a` as `o_a`), the inputs `ranks`, `bytes`, `fan_out`, `height`,
`fan_out_1` and so on, and `rounds` = ⌈log₂ ranks⌉. It consists of our names and of numbers, never
of text from a parameter set.

Messages have one size, and each rank has one port. `hop` is the time of a message from its send
until it is received, `send` and `receive` the time until the same rank may send or receive the next
one, `work` that of combining one. All ranks of a level of a tree are equivalent, so the time over a
tree is the sum of its levels."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from commodel.errors import UserError
from commodel.models.evaluation.values import PIECEWISE, Values
from commodel.models.families import find_family
from commodel.models.keys import make_key, parse_key
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model

BCAST, REDUCE = "bcast", "reduce"
LINEAR, BINOMIAL, CHAIN, KARY, TREE = ALTERNATIVES = (
    "linear",
    "binomial",
    "chain",
    "k-ary",
    "tree",
)
PREDICTIONS = tuple(
    (operation, alternative) for operation in (BCAST, REDUCE) for alternative in ALTERNATIVES
)
MAX_TREE_LEVELS = 6  # levels of the general tree, whose fan-outs the reader types
# the logarithm of a power of two may be wrong in its last digit
ROUNDS = "ROUNDUP(LOG(ranks,2)-1E-9,0)"

HOP, SEND, RECEIVE, WORK = MESSAGE_TIMES = ("hop", "send", "receive", "work")
MESSAGES = {
    "hockney": {HOP: "alpha+beta*bytes", SEND: "alpha+beta*bytes", RECEIVE: "alpha+beta*bytes"},
    "logp": {HOP: "L+2*o", SEND: "MAX(o,g)", RECEIVE: "MAX(o,g)"},
    "loggp": {
        HOP: "o_s+L+G*MAX(bytes-1,0)+o_r",
        SEND: "MAX(o_s,g+G*MAX(bytes-1,0))",
        RECEIVE: "MAX(o_r,g+G*MAX(bytes-1,0))",
    },
}
# Of a node with so many children: until the last one is reached, or until all are combined.
LEVELS = {BCAST: "hop+(children-1)*send", REDUCE: "hop+(children-1)*receive+children*work"}
# Only full binomial trees of reductions have a closed form.
BINOMIALS = {
    BCAST: "MAX(hop+(rounds-1)*send,IF(ranks<POWER(2,rounds),(rounds-1)*hop+send,rounds*hop))",
    REDUCE: "IF(ranks<POWER(2,rounds),NA(),hop+work+(rounds-1)*MAX(hop+work,receive))",
}
TAN_LEVEL = "L+o+g"  # with o of one message more than the children
MODELS = (*MESSAGES, "tan")

CURVES = {
    "constant": "a",
    "linear": "a+b*x",
    "logarithmic": "a+b*LN(x)",
    "quadratic": "a+b*x+c*x*x",
    "exponential": "a+b*(EXP(c*x)-1)",
}
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
FUNCTIONS: dict[str, Callable[..., float]] = {
    "MAX": max,
    "IF": lambda condition, if_true, if_false: if_true if condition else if_false,
    "POWER": pow,
    "ROUNDUP": lambda value, _: math.ceil(value),
    "LOG": math.log,
    "LN": math.log,
    "EXP": math.exp,
    "NA": lambda: math.nan,
}


def evaluate(expression: str, values: Mapping[str, float]) -> float:
    """Return the value of an expression; NaN where a spreadsheet shows an error."""
    try:
        return float(eval(expression, {"__builtins__": {}, **FUNCTIONS}, dict(values)))  # noqa: S307 # our own text
    except (ArithmeticError, ValueError):
        return math.nan


def substitute(expression: str, texts: Mapping[str, str]) -> str:
    """Return the expression with other texts in place of names."""
    return NAME.sub(lambda match: texts.get(match[0], match[0]), expression)


@dataclass(frozen=True)
class ClosedForms:
    """The expressions of a model with the forms of its functions. `message` has the times of one
    message, which the predictions may name."""

    parameters: ParameterSet
    values: Values
    message: dict[str, str]
    predictions: dict[tuple[str, str], str]

    @property
    def names(self) -> list[str]:
        """The parameters that the expressions name, in the order of the set."""
        used = {
            name
            for text in (*self.message.values(), *self.predictions.values())
            for name in NAME.findall(text)
        }
        return [name for name in self.values.numbers if make_identifier(name) in used]


def make_identifier(name: str) -> str:
    return name.replace(".", "_")


def make_closed_forms(parameters: ParameterSet) -> ClosedForms:
    """Return the expressions of a model; raise UserError if the formulas cannot use this set."""
    values = Model.of_set(parameters).values
    if values.classes:
        raise UserError(
            "its values differ by distance class, and this sheet has no placement of ranks"
        )
    if parameters.model == "tan":
        return _make_tan_forms(parameters, values)
    if values.settings.get("capacity") == "finite":
        raise UserError("a finite capacity has no closed form")
    texts = {name: _expand(values, name, "bytes") for name in find_family(parameters.model).by_name}
    message = {part: substitute(text, texts) for part, text in MESSAGES[parameters.model].items()}
    if "gamma" in values:
        message[WORK] = "gamma*bytes"
    predictions: dict[tuple[str, str], str] = {}
    for operation, level in LEVELS.items():
        if operation == REDUCE and WORK not in message:
            continue
        over_trees = _add_levels(partial(_put_children, level))
        predictions |= {(operation, alternative): text for alternative, text in over_trees.items()}
        predictions[operation, BINOMIAL] = BINOMIALS[operation]
    return ClosedForms(
        parameters=parameters, values=values, message=message, predictions=predictions
    )


def _make_tan_forms(parameters: ParameterSet, values: Values) -> ClosedForms:
    """Return the expressions of reductions. The model tan predicts no broadcasts, and a binomial
    tree has no closed form."""
    overhead, start = "o", "C"
    if values.settings.get("recipe") == "paper":
        overhead = "o_paper"
        start = "C_paper" if "C_paper" in values else "C"

    def compute_level(children: str) -> str:
        return f"({substitute(TAN_LEVEL, {'o': _expand(values, overhead, _put_children('children+1', children))})})"

    over_trees = _add_levels(compute_level)
    return ClosedForms(
        parameters=parameters,
        values=values,
        message={},
        predictions={
            (REDUCE, alternative): f"{start}+{text}" for alternative, text in over_trees.items()
        },
    )


def _put_children(level: str, children: str) -> str:
    return f"({substitute(level, {'children': children})})"


def _add_levels(level: Callable[[str], str]) -> dict[str, str]:
    """Return the times over trees whose levels add up. `level(n)` is that of a node with n
    children."""
    counts = [f"fan_out_{number}" for number in range(1, MAX_TREE_LEVELS + 1)]
    return {
        LINEAR: level("(ranks-1)"),
        CHAIN: f"(ranks-1)*{level('1')}",
        KARY: f"height*{level('fan_out')}",
        TREE: "(" + "+".join(f"IF({count}>0,{level(count)},0)" for count in counts) + ")",
    }


def _expand(values: Values, name: str, x: str) -> str:
    """Return the expression of a parameter, or of a function at `x`."""
    if name in values:
        return make_identifier(name)
    form = values.forms.get(name, "constant")
    if form == PIECEWISE:
        return _expand_pieces(values, name, x)
    if form not in CURVES:
        raise UserError(f"this sheet has no formula for the form '{form}' of {name}")
    texts = {letter: make_identifier(make_key(name, letter)) for letter in "abc"}
    return f"({substitute(CURVES[form], texts | {'x': x})})"


def _expand_pieces(values: Values, name: str, x: str) -> str:
    """Return a function in pieces at `x`. At an edge, the piece below the edge applies."""
    edges = sorted(
        int(key.part[1:])
        for key in map(parse_key, values.numbers)
        if key.function == name and key.part.startswith("x")
    )
    text = _expand_piece(values, name, "", x)
    for number in edges:
        edge = make_identifier(make_key(name, f"x{number}"))
        text = f"IF({x}>{edge},{_expand_piece(values, name, str(number), x)},{text})"
    return text


def _expand_piece(values: Values, name: str, number: str, x: str) -> str:
    height = make_key(name, f"a{number}")
    slope = make_key(name, f"b{number}")
    return make_identifier(height) + (f"+{make_identifier(slope)}*{x}" if slope in values else "")
