"""Random parameter sets and patterns for the calculator, and the predictions of the package for them."""

import random
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from commodel.models.families import find_family, find_unit
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from commodel.reports.xlsx.calculator.cells import MAX_TREE_LEVELS, ModelTerms, Pattern, Row, make_term
from commodel.reports.xlsx.calculator.families import BCAST, BINOMIAL, CHAIN, FORMULAS, KARY, LINEAR, REDUCE, TREE


@dataclass(frozen=True)
class Workload:
    ranks: int
    bytes: int
    segment: int
    fan_out: int
    height: int
    fan_outs: tuple[int, ...]

    def pattern(self, put) -> Pattern:
        numbers = {name: put(name, getattr(self, name)) for name in ("ranks", "bytes", "segment", "fan_out", "height")}
        levels = [*self.fan_outs, *[0] * (MAX_TREE_LEVELS - len(self.fan_outs))]
        return Pattern(**numbers, fan_outs=tuple(put(f"fan out {at}", count) for at, count in enumerate(levels, 1)))

    def point(self, operation: str, way: str, *, one_node: bool = False):
        """Return the point of an operation and tree of the calculator, with each rank on its own node or all on one."""
        layout = f"block:{self.nodes_of(way)}" if one_node else ""
        common = {"operation": operation, "bytes": self.bytes, "layout": layout}
        spellings = {
            (BCAST, CHAIN): {"algorithm": f"chain:{self.segment}", "ranks": self.ranks},
            (REDUCE, CHAIN): {"topology": f"chain:{self.ranks - 1}"},
        }
        named = {
            LINEAR: {"algorithm": "linear", "ranks": self.ranks},
            BINOMIAL: {"algorithm": "binomial", "ranks": self.ranks},
            KARY: {"topology": f"kary:{self.fan_out}^{self.height}"},
            TREE: {"topology": "balanced:" + "x".join(map(str, self.fan_outs))},
        }
        return make_point(PlatformResources.unlimited(), common | (spellings.get((operation, way)) or named[way]))

    def nodes_of(self, way: str) -> int:
        """Return the number of ranks, which is the number of nodes of the tree."""
        levels = {KARY: (self.fan_out,) * self.height, TREE: self.fan_outs}.get(way)
        return sum(accumulate((1, *levels), mul)) if levels else self.ranks


def workload(draw: random.Random, most_ranks: int = 70) -> Workload:
    ranks = draw.choice([2, 3, 4, 5, 8, 16, 17, 31, 32, 33, draw.randint(2, most_ranks)])
    bytes = draw.choice([0, 1, 8, 1024, 1500, 1501, 4096, draw.randint(0, 1 << 17)])
    segment = draw.choice([64, 512, 1024, 8192, max(bytes // draw.randint(1, 20), 1)])
    segment = max(segment, bytes // 30, 1)
    fan_outs = tuple(draw.randint(1, 5) for _ in range(draw.randint(1, 4)))
    return Workload(ranks, bytes, segment, draw.randint(1, 4), draw.randint(1, 4), fan_outs)


def parameter_set(draw: random.Random, name: str) -> ParameterSet:
    """Return random values of the magnitude of clusters, sometimes an outlier or a zero."""

    def time(size: float = 1e-5) -> float:
        return draw.choice([0.0, 1.0, 1.0, 1.0, 1.0, 8.0]) * draw.uniform(0.1, 2) * size

    forms, values, settings = {}, {"gamma": time(1e-9)}, {}

    def function(called: str, form: str, size: float = 1e-5, slope: float = 1e-9, edges: tuple[int, ...] = ()):
        forms[called] = form
        numbers = {"a": time(size) + size / 10}
        if form in ("linear", "piecewise", "quadratic"):
            numbers["b"] = time(slope)
        if form == "logarithmic":
            numbers["b"] = time(size)
        if form == "quadratic":
            numbers["c"] = time(slope) * 1e-3
        if form == "exponential":
            numbers |= {"b": time(size), "c": draw.uniform(0.0, 0.02)}
        if form in ("pipeline", "saturating"):
            numbers |= {"b": time(size), "c": draw.uniform(0.1, 3)}
        if form == "saturating":
            numbers |= {"d": time(size), "e": -draw.uniform(0.01, 0.3), "f": draw.uniform(0, 3)}
        for number, edge in enumerate(edges, 1):
            numbers |= {f"x{number}": float(edge), f"a{number}": time(3 * size) + size / 10, f"b{number}": time(slope)}
        values.update({f"{called}.{letter}": value for letter, value in numbers.items()})

    def pieces() -> dict:
        edges = draw.choice([(), (1024,), (512, 8192)])
        return {"form": "piecewise" if edges else draw.choice(["constant", "linear"]), "edges": edges}

    if name == "hockney":
        edges = draw.choice([(), (1024,), (512, 8192)])
        for called, size in (("alpha", 1e-5), ("beta", 1e-9)):
            function(called, "piecewise" if edges else "constant", size, size * 1e-5, edges)
    if name in ("logp", "loggp"):
        values |= {letter: time() for letter in ("L", "g", *(("o",) if name == "logp" else ("o_s", "o_r")))}
        values |= {} if name == "logp" else {"G": time(1e-8)}
    if name == "lop":
        settings = {
            "posting": draw.choice(["isend", "list", "put"]),
            "latency": draw.choice(["halved", "printed"]),
        }
        for called in ("rtt", "rtt_list", "rtt_put"):
            function(called, draw.choice(["saturating", "pipeline", "constant"]), 4e-5)
        for called in ("o_s", "o_list", "o_put"):
            function(called, draw.choice(["pipeline", "constant"]), 2e-6)
    if name == "tan":
        del values["gamma"]
        settings = {"recipe": draw.choice(["joint", "paper"])}
        values |= {"L": time(), "g": time(1e-6), "C": time(), "C_paper": time()}
        for called in ("o", "o_paper"):
            function(called, draw.choice(["constant", "linear", "quadratic", "logarithmic", "exponential"]), 1e-5, 1e-6)
            values[f"{called}.a"] -= draw.choice([0.0, 0.0, 3e-5])
    if name == "cluster":
        for called in ("O_s", "g_s", "g_r", "O_r"):
            function(called, size=1e-5, slope=2e-8, **pieces())
        values |= {"U_r": time(), "L_0": time(), "L_p": time(1e-7), "L_m": time(1e-8), "packet": 1500.0}
        values |= draw.choice([{}, {"B_L": float(draw.randint(1, 300))}])
        values |= draw.choice([{}, {"capacity": draw.uniform(1e7, 1e9)}])
    if name == "taulop":
        settings = {reading: draw.choice(find_family(name).settings[reading]) for reading in ("shared", "rings")}
        forms["gamma"], values["gamma.a"], values["gamma.b"] = "linear", 0.0, values.pop("gamma")
        channel = draw.choice([0, 1])
        values |= {"p_0": time(1e-6)}
        function(f"o_{channel}", **pieces())
        forms[f"L_{channel}"] = "table"
        for size in SIZES:
            for level in LEVELS_AT_ONCE:
                values[f"L_{channel}.{size}x{level}"] = (size * 1e-9 + 1e-6) * level**0.5 * draw.uniform(0.8, 1.2)
    entry = find_family(name)
    estimates = {key: Estimate(value, find_unit(entry, key, forms), value, value) for key, value in values.items()}
    return ParameterSet(name, "", "made up", estimates, forms, settings)


SIZES, LEVELS_AT_ONCE = (1, 64, 1024, 16384), (1, 2, 4, 8)


def formulas(parameters: ParameterSet, some: Workload, row: Row):
    """Return the calculator's terms for a set and a workload, with all inputs in cells of the row."""
    requested = ModelTerms(find_family(parameters.family), Model.of_set(parameters).values)
    FORMULAS[parameters.family](Row(1), requested, some.pattern(lambda name, number: make_term(number)))
    cells = {
        name: row.put(f"{parameters.family} {name}", requested.convert_to_shown_unit(name)[0])
        for name in requested.requested
    }
    areas = {}
    for name, area in requested.areas.items():
        places = [f"{name} {place}" for place in range(len(area.values))]
        for place, value in zip(places, area.values, strict=True):
            row.put(place, value)
        areas[name] = row.make_area(places)
    known = ModelTerms(requested.entry, requested.values, cells, areas)
    pattern = some.pattern(row.put)
    return FORMULAS[parameters.family](row, known, pattern), known, pattern


def predictions(parameters: ParameterSet, some: Workload, requested) -> dict[tuple[str, str], float]:
    """Return the package's predictions in µs."""
    one_node = "L_0" in parameters.forms and "L_1" not in parameters.forms
    points = [some.point(operation, way, one_node=one_node) for operation, way in requested]
    predicted = predict(parameters, points)
    return {key: entry.seconds * 1e6 for key, entry in zip(requested, predicted, strict=True)}
