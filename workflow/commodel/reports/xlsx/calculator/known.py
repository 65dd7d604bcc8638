"""The values of one family as cells: numbers, and functions of whatever form a set has for them."""

from dataclasses import dataclass, field

from commodel.errors import UserError
from commodel.models.families import Family, unit
from commodel.models.keys import key, parse, sample
from commodel.models.pricing.values import PIECEWISE, TABLE, Values
from commodel.reports.xlsx.calculator.cells import (
    Area,
    Number,
    Row,
    Term,
    exponential,
    largest,
    logarithm,
    smallest,
    term,
    when,
)

# Units as people write them, and what one of them is of those that formulas count in: microseconds and bytes.
SHOWN_UNITS = {
    "s": ("µs", 1e6, 1),
    "s/B": ("ns/B", 1e9, 1e-3),
    "s/B²": ("ps/B²", 1e12, 1e-6),
    "s·B": ("µs·B", 1e6, 1),
    "B/s": ("MB/s", 1e-6, 1),
}


def shown(unit: str) -> tuple[str, float, float]:
    """How a value is written, by what it is multiplied for that, and by what formulas multiply it again."""
    if unit in SHOWN_UNITS:
        return SHOWN_UNITS[unit]
    return (f"µ{unit}", 1e6, 1) if unit.startswith("s") else ("" if unit == "1" else unit, 1, 1)


@dataclass
class Known:
    """`cells` are where numbers stand; without them they are numbers, and `asked` tells which are wanted."""

    entry: Family
    values: Values
    cells: dict[str, Term] = field(default_factory=dict)
    areas: dict[str, Area] = field(default_factory=dict)
    asked: dict[str, None] = field(default_factory=dict)

    def setting(self, name: str) -> object:
        return self.values.settings.get(name, (self.entry.settings or {name: ("",)})[name][0])

    def in_shown_unit(self, name: str) -> tuple[float, str]:
        text, factor, _ = shown(unit(self.entry, name, self.values.forms))
        return self.number(name) * factor, text

    def number(self, name: str) -> float:
        if name not in self:
            raise UserError(f"no {name} in this set")
        return float(self.values.numbers[name][0, 0])

    def __contains__(self, name: str) -> bool:
        return name in self.values.numbers

    def __getitem__(self, name: str) -> Term:
        """In microseconds and bytes."""
        self.asked[name] = None
        factor = shown(unit(self.entry, name, self.values.forms))[2]
        cell = self.cells[name] if name in self.cells else term(self.in_shown_unit(name)[0])
        return cell if factor == 1 else cell * factor

    def at(self, function: str, x: Number) -> Term:
        form = self.values.forms.get(function, "constant")
        if form == PIECEWISE:
            return self._pieces(function, x)
        if form not in LETTERS:
            raise UserError(f"{function} is given by samples")
        a, *rest = (self[key(function, letter)] for letter in ("a", *LETTERS[form]))
        return a + SHAPES[form](x, *rest) if rest else a

    def _pieces(self, function: str, x: Number) -> Term:
        """Up to and including an edge the piece before it holds."""
        result, number = self._piece(function, "", x), 1
        while (edge := key(function, f"x{number}")) in self:
            result = when(term(x) > self[edge], self._piece(function, str(number), x), result)
            number += 1
        return result

    def _piece(self, function: str, number: str, x: Number) -> Term:
        slope = key(function, f"b{number}")
        height = self[key(function, f"a{number}")]
        return height + self[slope] * x if slope in self else height

    def samples(self, function: str) -> tuple[list[int], list[int]]:
        """Sizes and levels of a surface."""
        known = [parse(name).sample for name in self.values.numbers if parse(name).function == function]
        places = sorted({entry[0] for entry in known if entry})
        levels = sorted({entry[1] for entry in known if entry and entry[1] is not None})
        return places, levels

    def surface(self, row: Row, function: str, x: Term) -> "Surface":
        """What a function by samples is at `x`, at each of its levels: columns of the row. Linear between samples,
        constant below the first, beyond the last as steep as between the last two but never falling."""
        if self.values.forms.get(function) != TABLE:
            raise UserError(f"{function} is no table of samples")
        places, levels = self.samples(function)
        if not levels or len(places) < 2:
            raise UserError(f"{function} has too few samples, or no levels")
        if any(sample(function, place, level) not in self for level in levels for place in places):
            raise UserError(f"{function} lacks a sample")
        over = self.area(f"{function} bytes", places)
        i = row.put(f"{function} left", largest(1, smallest(len(places) - 1, over.up_to(x))))
        before, after = over.at(i), over.at(i + 1)
        share = row.put(f"{function} share", largest(0, (x - before) / (after - before)))
        names = [f"{function} of {level}" for level in levels]
        for level, name in zip(levels, names, strict=True):
            column = self.area(f"{function} {level}", [self.number(sample(function, p, level)) * 1e6 for p in places])
            low, high = column.at(i), column.at(i + 1)
            beyond = high + (share - 1) * largest(high - low, 0)
            row.put(name, when(share > 1, beyond, low + share * (high - low)))
        return Surface(self.area(f"{function} at once", levels), row.area(names), levels[-1])

    def area(self, name: str, values: list[float]) -> Area:
        """A column of numbers that stands on the sheet."""
        return self.areas.setdefault(name, Area("", tuple(map(float, values))))


@dataclass(frozen=True, slots=True)
class Surface:
    levels: Area
    values: Area
    highest: int

    def at(self, level: Term) -> Term:
        """Linear between levels; beyond the highest in proportion."""
        if len(self.values.values) == 1:
            return self.values.at(term(1)) * largest(level / self.highest, 1)
        j = largest(1, smallest(len(self.values.values) - 1, self.levels.up_to(level)))
        before, after = self.levels.at(j), self.levels.at(j + 1)
        share = largest(0, smallest(1, (level - before) / (after - before)))
        low, high = self.values.at(j), self.values.at(j + 1)
        return (low + share * (high - low)) * largest(level / self.highest, 1)


LETTERS = {
    "constant": "",
    "linear": "b",
    "logarithmic": "b",
    "quadratic": "bc",
    "exponential": "bc",
    "pipeline": "bc",
    "saturating": "bcdef",
}
SHAPES = {
    "linear": lambda x, b: b * x,
    "logarithmic": lambda x, b: b * logarithm(x),
    "quadratic": lambda x, b, c: b * x + c * (x * x),
    "exponential": lambda x, b, c: b * (exponential(c * x) - 1),
    "pipeline": lambda x, b, c: b / (c + x),
    "saturating": lambda x, b, c, d, e, f: b / (c + x) - d * (exponential(e * (x - f)) - 1),
}
