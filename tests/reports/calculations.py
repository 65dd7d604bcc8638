"""Random parameter sets and patterns for the calculator, and the predictions of the package for
them."""

import random
from dataclasses import dataclass

from commodel.models.families import find_family, find_unit
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from commodel.reports.xlsx.closed_forms import (
    BINOMIAL,
    CHAIN,
    KARY,
    LINEAR,
    MAX_TREE_LEVELS,
    ROUNDS,
    TREE,
    ClosedForms,
    evaluate,
    make_identifier,
)


@dataclass(frozen=True)
class Workload:
    ranks: int
    bytes: int
    fan_out: int
    height: int
    fan_outs: tuple[int, ...]

    @property
    def inputs(self) -> dict[str, float]:
        """The inputs of the calculator."""
        levels = [*self.fan_outs, *[0] * (MAX_TREE_LEVELS - len(self.fan_outs))]
        inputs = {name: getattr(self, name) for name in ("ranks", "bytes", "fan_out", "height")}
        inputs |= {f"fan_out_{number}": count for number, count in enumerate(levels, 1)}
        return inputs | {"rounds": evaluate(ROUNDS, inputs)}

    def point(self, operation: str, way: str):
        """Return the point of an operation and tree of the calculator, with each rank on its own
        node."""
        named = {
            LINEAR: {"algorithm": "linear", "ranks": self.ranks},
            BINOMIAL: {"algorithm": "binomial", "ranks": self.ranks},
            CHAIN: {"topology": f"chain:{self.ranks - 1}"},
            KARY: {"topology": f"kary:{self.fan_out}^{self.height}"},
            TREE: {"topology": "balanced:" + "x".join(map(str, self.fan_outs))},
        }
        return make_point(
            PlatformResources.unlimited(),
            {"operation": operation, "bytes": self.bytes} | named[way],
        )


def workload(draw: random.Random, most_ranks: int = 70) -> Workload:
    ranks = draw.choice([2, 3, 4, 5, 8, 16, 17, 31, 32, 33, draw.randint(2, most_ranks)])
    bytes = draw.choice([0, 1, 8, 1024, 1500, 1501, 4096, draw.randint(0, 1 << 17)])
    fan_outs = tuple(draw.randint(1, 5) for _ in range(draw.randint(1, 4)))
    return Workload(ranks, bytes, draw.randint(1, 4), draw.randint(1, 4), fan_outs)


def parameter_set(draw: random.Random, name: str) -> ParameterSet:
    """Return random values of the magnitude of clusters, sometimes an outlier or a zero."""

    def time(size: float = 1e-5) -> float:
        return draw.choice([0.0, 1.0, 1.0, 1.0, 1.0, 8.0]) * draw.uniform(0.1, 2) * size

    forms, values, settings = {}, {"gamma": time(1e-9)}, {}

    def function(
        called: str, form: str, size: float = 1e-5, slope: float = 1e-9, edges: tuple[int, ...] = ()
    ):
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
        for number, edge in enumerate(edges, 1):
            numbers |= {
                f"x{number}": float(edge),
                f"a{number}": time(3 * size) + size / 10,
                f"b{number}": time(slope),
            }
        values.update({f"{called}.{letter}": value for letter, value in numbers.items()})

    def pieces() -> dict:
        edges = draw.choice([(), (1024,), (512, 8192)])
        return {
            "form": "piecewise" if edges else draw.choice(["constant", "linear"]),
            "edges": edges,
        }

    if name == "hockney":
        edges = draw.choice([(), (1024,), (512, 8192)])
        for called, size in (("alpha", 1e-5), ("beta", 1e-9)):
            function(called, "piecewise" if edges else "constant", size, size * 1e-5, edges)
    if name in ("logp", "loggp"):
        values |= {
            letter: time() for letter in ("L", "g", *(("o",) if name == "logp" else ("o_s", "o_r")))
        }
        values |= {} if name == "logp" else {"G": time(1e-8)}
    if name == "tan":
        del values["gamma"]
        settings = {"recipe": draw.choice(["joint", "paper"])}
        values |= {"L": time(), "g": time(1e-6), "C": time(), "C_paper": time()}
        for called in ("o", "o_paper"):
            function(
                called,
                draw.choice(["constant", "linear", "quadratic", "logarithmic", "exponential"]),
                1e-5,
                1e-6,
            )
    if name == "taulop":
        settings = {
            reading: draw.choice(find_family(name).settings[reading].values)
            for reading in ("shared", "rings")
        }
        forms["gamma"], values["gamma.a"], values["gamma.b"] = "linear", 0.0, values.pop("gamma")
        channel = draw.choice([0, 1])
        values |= {"p_0": time(1e-6)}
        function(f"o_{channel}", **pieces())
        forms[f"L_{channel}"] = "table"
        for size in SIZES:
            for level in LEVELS_AT_ONCE:
                values[f"L_{channel}.{size}x{level}"] = (
                    (size * 1e-9 + 1e-6) * level**0.5 * draw.uniform(0.8, 1.2)
                )
    entry = find_family(name)
    estimates = {
        key: Estimate(value, find_unit(entry, key, forms), value, value)
        for key, value in values.items()
    }
    return ParameterSet(name, "", "made up", estimates, forms, settings)


SIZES, LEVELS_AT_ONCE = (1, 64, 1024, 16384), (1, 2, 4, 8)


def evaluate_forms(forms: ClosedForms, some: Workload) -> dict[tuple[str, str], float]:
    """Return the predictions of the closed forms in µs."""
    known = some.inputs
    for name, numbers in forms.values.numbers.items():
        in_time = find_unit(
            find_family(forms.parameters.model), name, forms.values.forms
        ).startswith("s")
        known[make_identifier(name)] = float(numbers[0, 0]) * (1e6 if in_time else 1)
    known |= {name: evaluate(text, known) for name, text in forms.message.items()}
    return {key: evaluate(text, known) for key, text in forms.predictions.items()}


def predictions(
    parameters: ParameterSet, some: Workload, requested
) -> dict[tuple[str, str], float]:
    """Return the package's predictions in µs."""
    predicted = predict(parameters, [some.point(operation, way) for operation, way in requested])
    return {key: entry.seconds * 1e6 for key, entry in zip(requested, predicted, strict=True)}
