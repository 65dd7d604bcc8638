"""Half a round trip between ranks of a distance class, T(m) = o + L(m) + m·G(m) with the overheads of both ends: pieces
of a line, or samples of G where no lines hold, as within a node, where caches are."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from commodel.models import Array
from commodel.models.fitting.pieces import piecewise
from commodel.models.fitting.regression import mean
from commodel.models.keys import key, parse, sample
from commodel.models.pricing.functions import PIECEWISE, TABLE, evaluate

BYTES_SHOW = 1.1  # times as long as an empty message: from there on the time per byte can be told
FEWEST_SIZES = 4  # sizes
CLOSE_TO_TIMES = 0.05  # to the times, all in all: no line closer than this is given up


@dataclass(frozen=True, eq=False)
class HalfTrip:
    """L has the overheads in it here."""

    forms: Mapping[str, str]
    values: Mapping[str, Array]

    @classmethod
    def of(cls, size: Array, half: Array, most: int = 3, scale: Array | None = None) -> "HalfTrip":
        """Of times (draws, cases): at most so many lines, unless these miss more than noise explains, and more than
        lines between the samples do, whose gaps are half as wide as those that can be judged. By parts of the times, or
        of `scale`."""
        scale = half[0] if scale is None else scale
        form, line = piecewise("T", size, half, 1 / scale**2, most)
        lines, sizes = cls.by_lines(form, line), np.unique(size)
        if len(sizes) < FEWEST_SIZES:
            return lines
        times, scale = (
            np.stack([column[..., size == one_size].mean(axis=-1) for one_size in sizes], axis=-1)
            for column in (half, scale)
        )
        noise = (times[1:] / scale).var(axis=0) if len(times) > 1 else np.zeros(len(sizes))
        missed = ((lines.at(sizes)[0] - times[0]) / scale) ** 2 - noise
        between = (_missed_between(sizes, times[0]) / scale[1:-1]) ** 2 - noise[1:-1]
        return (
            lines if np.mean(missed) <= max(CLOSE_TO_TIMES**2, np.mean(between) / 4) else cls.by_samples(sizes, times)
        )

    @classmethod
    def by_lines(cls, form: str, line: Mapping[str, Array]) -> "HalfTrip":
        values = {}
        for name, draws in line.items():
            letter, number = parse(name).part[0], parse(name).part[1:]
            for function in {"a": "L", "b": "G", "x": "LG"}[letter]:
                values[key(function, f"{'x' if letter == 'x' else 'a'}{number}")] = draws
        return cls(dict.fromkeys("LG", PIECEWISE if form == PIECEWISE else "constant"), values)

    @classmethod
    def by_samples(cls, sizes: Array, times: Array) -> "HalfTrip":
        """L is that of messages which are too short for their bytes to count."""
        first = max(int(np.argmax(times[0] > BYTES_SHOW * times[0, 0])), 1)
        L = mean(times[:, :first], 1 / times[0, :first] ** 2)
        values = {"L.a": L}
        for size, column in zip(sizes[first:], times.T[first:], strict=True):
            values[sample("G", size)] = np.maximum(column - L, 0) / size
        return cls({"L": "constant", "G": TABLE}, values)

    def parts(self, bytes: Array) -> tuple[Array, Array]:
        """What comes before a message's bytes, and what these take: (draws, sizes) each."""
        values = {name: draws[:, None] for name, draws in self.values.items()}
        L, G = (evaluate(self.forms[name], name, values, bytes) for name in "LG")
        return L + 0.0 * bytes, G * bytes

    def at(self, bytes: Array) -> Array:
        return sum(self.parts(bytes))

    def named(self, apart: str, overheads: Array) -> tuple[dict[str, Array], dict[str, str]]:
        """Values of a distance class, L without the overheads, and the forms of its functions."""
        values = {}
        for name, draws in self.values.items():
            function, part = parse(name).function, parse(name).part
            before = overheads if function == "L" and part[0] == "a" else 0.0
            values[key(function, apart, part)] = np.maximum(draws - before, 0)
        return values, {key(function, apart): form for function, form in self.forms.items()}

    @property
    def terms(self) -> int:
        """How many values it has: an edge is one of both functions."""
        return sum(not name.startswith("L.x") for name in self.values)


def _missed_between(sizes: Array, times: Array) -> Array:
    """By how much a line from one sample to the next but one misses the one between."""
    share = (sizes[1:-1] - sizes[:-2]) / (sizes[2:] - sizes[:-2])
    return times[:-2] + share * (times[2:] - times[:-2]) - times[1:-1]
