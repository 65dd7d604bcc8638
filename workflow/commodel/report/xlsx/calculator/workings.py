"""The workings of the calculator: a row for each message size, with the prices of all families, and which of them the
chart draws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from commodel.errors import UserError
from commodel.models.families import family
from commodel.models.keys import parse
from commodel.parameters import ParameterSet
from commodel.price.model import Model
from commodel.report.xlsx.calculator import cluster
from commodel.report.xlsx.calculator.families import FORMULAS
from commodel.report.xlsx.calculator.known import Known
from commodel.report.xlsx.calculator.row import LEVELS, Pattern, Row
from commodel.report.xlsx.calculator.terms import Term, term
from commodel.report.xlsx.calculator.ways import OPERATIONS, WAYS, Prices

START = {"ranks": 16, "bytes": 1024, "segment": 8192, "fan_out": 4, "height": 2}
FAN_OUTS = (4, 4, *(0,) * (LEVELS - 2))
DRAWN = tuple(f"{operation} {way}" for operation in OPERATIONS for way in WAYS)
BOUNDS = {
    "fewest": "fewest that keep the receiver busy (equation 5)",
    "most": "most that lose nothing (equation 6)",
    "window": "window: how many should send at once (equation 7)",
    "through": "share that gets through if all send [%] (equation 4)",
    "full": "until the buffer is full then [µs] (equation 3; 0: never)",
}


@dataclass(frozen=True)
class Calculable:
    """A set of which there are formulas."""

    parameters: ParameterSet
    known: Known

    @property
    def name(self) -> str:
        return self.parameters.family

    @property
    def asked(self) -> list[str]:
        """The names of the values that formulas use, in the family's order."""
        order = list(self.known.entry.by_name)
        return sorted(self.known.asked, key=lambda name: order.index(parse(name).parameter))


def calculable(sets: Sequence[ParameterSet]) -> tuple[list[Calculable], dict[str, str]]:
    """Those of one platform that can be calculated, and why others of known formulas cannot."""
    calculable, refused = [], {}
    for parameters in sets:
        if parameters.family not in FORMULAS:
            continue
        try:
            known = Known(family(parameters.family), Model.of_set(parameters).values)
            price(known, Row(1), _start())
        except UserError as error:
            refused[parameters.family] = error.message
        else:
            calculable.append(Calculable(parameters, known))
    return calculable, refused


def price(known: Known, row: Row, pattern: Pattern) -> Prices:
    if known.values.classes:
        raise UserError("its values differ from distance class to distance class, and nobody says here where ranks sit")
    return FORMULAS[known.entry.name](row, known, pattern)


def _start() -> Pattern:
    return Pattern(**{name: term(number) for name, number in START.items()}, fan_outs=tuple(map(term, FAN_OUTS)))


@dataclass(frozen=True)
class Workings:
    """A row, and where in it the prices of each family stand; of the reader's own size the bounds of a gather too."""

    line: Row
    prices: dict[str, Prices]
    bounds: list[tuple[str, Term]]


def workings(number: int, pattern: Pattern, known: dict[str, Known], draw: Term, own: bool) -> Workings:
    line = Row(number)
    pattern = replace(pattern, bytes=line.put("bytes", pattern.bytes))
    drawn = line.put("drawn", draw)
    prices: dict[str, Prices] = {}
    for name, values in known.items():
        terms = price(values, line, pattern)
        prices[name] = {key: line.put(f"{name} {' '.join(key)}", value) for key, value in terms.items()}
    for name, places in prices.items():
        line.put(f"draw {name}", _chosen(drawn, places))
    bounds = []
    if own and "cluster" in known:
        terms = cluster.bounds(line, known["cluster"], pattern)
        terms |= {"through": 100 * terms["through"]} if "through" in terms else {}
        bounds = [(BOUNDS[name], value) for name, value in terms.items()]
    return Workings(line, prices, bounds)


def _chosen(drawn: Term, prices: Prices) -> Term:
    cells = [prices.get(tuple(name.split(" "))) for name in DRAWN]
    text = f"CHOOSE({drawn.text},{','.join(cell.text if cell else 'NA()' for cell in cells)})"
    cell = cells[int(drawn.value) - 1]
    value = cell.value if cell is not None and cell.value > 0 else math.nan
    return Term(f"IFERROR(IF({text}>0,{text},NA()),NA())", value)
