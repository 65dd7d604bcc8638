"""Alternatives of a workload as advice considers them: candidates, nearest measured workloads, and the panel of models.

The ways to do a job that advice looks at: every tree of some kinds with so many leaves, every algorithm with its
arguments.

Layouts that advice looks at where nobody says which, and `near`, which is made for each pattern, so that ranks that
send each other much are near each other.

A panel of families: what each of them says about the same candidates, in time of one wave and time between waves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from commodel.errors import UserError
from commodel.parameters import ParameterSet
from commodel.patterns.algorithms import Algorithm, choices
from commodel.patterns.arguments import Kind
from commodel.patterns.build import schedule
from commodel.patterns.layouts import place
from commodel.patterns.layouts.regular import write_nodes
from commodel.patterns.points import Setting, make_point
from commodel.patterns.rank_mapping import graph, near
from commodel.patterns.schedule import Schedule, stack
from commodel.patterns.trees.topologies import tree
from commodel.predictions.barrier_bounds import radices
from commodel.predictions.model import Model
from commodel.predictions.predictions import ENDLESS, FEWEST_DRAWS, Stream, says
from commodel.predictions.validity import PriceStatus, assess_validity, single_message_ratios, widening
from commodel.progress import within
from commodel.records import Point
from commodel.stats import NORMAL
from commodel.units import format_bytes

MOST_TREES = 400  # of a kind; of more, as many as that, evenly spread
RADICES = range(2, 9)
FAMILIAR = ("linear", "binomial")  # of names for the same messages, those to go by
MOST_SEGMENTS = 256  # more, and what a message costs by itself is all that counts
SEGMENTS = tuple(1 << power for power in range(8, 21, 2))  # 256 B to 1 MiB
COUNTS = tuple(1 << power for power in range(12))


def trees(leaves: int, latencies: Sequence[float] = ()) -> list[str]:
    """Trees with so many leaves, each once: flat, all balanced ones, two levels split as evenly as can be, k-nomial,
    and for each latency (of a message, in units of the time until the next can start) the postal-optimal one."""
    specs = [f"flat:{leaves}", *_spread(list(balanced(leaves))), *_spread(list(two_levels(leaves)))]
    for radix in RADICES:
        specs += grown(f"knomial:{radix}@", leaves)
    for latency in latencies:
        specs += grown(f"postal:{max(latency, 1.0):.6g}@", leaves)
    distinct: dict[bytes, str] = {}
    for spec in specs:
        distinct.setdefault(tree(spec).parent.tobytes(), spec)
    return list(distinct.values())


def _spread(specs: list[str]) -> list[str]:
    picks = np.unique(np.linspace(0, len(specs) - 1, min(MOST_TREES, len(specs))).astype(int)) if specs else []
    return [specs[pick] for pick in picks]


def balanced(leaves: int) -> Iterator[str]:
    """All products of two and more fan-outs, in every order."""
    for factors in _factors(leaves):
        if len(factors) > 1:
            yield "balanced:" + "x".join(map(str, factors))


def _factors(number: int) -> Iterator[tuple[int, ...]]:
    yield (number,)
    for first in range(2, number // 2 + 1):
        if number % first == 0:
            for rest in _factors(number // first):
                yield (first, *rest)


def two_levels(leaves: int) -> Iterator[str]:
    """Every number of inner nodes, each with as many leaves as the others or one less."""
    for inner in range(2, leaves // 2 + 1):
        fewer, more = divmod(leaves, inner)
        if more:
            yield f"groups:{fewer + 1}x{more},{fewer}x{inner - more}"


def grown(kind: str, leaves: int) -> list[str]:
    """The smallest and the largest tree of a kind with so many leaves: each further node adds a leaf or none. None
    where no tree of this size can be built."""

    def first_with(wanted: int) -> int:
        low, high = wanted + 1, 2 * wanted
        while tree(f"{kind}{high}").leaves < wanted:
            low, high = high + 1, 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if tree(f"{kind}{middle}").leaves >= wanted else (middle + 1, high)
        return low

    try:
        ends = sorted({first_with(leaves), first_with(leaves + 1) - 1})
    except UserError:
        return []
    return [f"{kind}{nodes}" for nodes in ends]


def algorithms(operation: str, ranks: int, bytes: int, windows: Sequence[int] = ()) -> list[str]:
    """Every algorithm for an operation, with all arguments that could make a difference, the familiar ones first;
    `windows` are those that a windowed gather could have."""
    known = choices(operation)
    ordered = [known[name] for name in FAMILIAR if name in known]
    ordered += [entry for name, entry in known.items() if name not in FAMILIAR]
    return [spec for entry in ordered for spec in _spellings(entry, ranks, bytes, windows)]


def _spellings(entry: Algorithm, ranks: int, bytes: int, windows: Sequence[int]) -> list[str]:
    if entry.argument is None:
        return [entry.choice]
    if entry.argument.is_size:
        longest = bytes // ranks if entry.operation == "allreduce" else bytes
        values = [format_bytes(size).replace(" ", "") for size in SEGMENTS if size < longest <= MOST_SEGMENTS * size]
    elif entry.argument.kind is Kind.WINDOW:
        values = sorted({*windows, *(count for count in COUNTS if count < ranks)})
    else:
        values = sorted(
            {count for count in RADICES if count < ranks} | set(radices(ranks) if entry.operation == "barrier" else ())
        )
    plain = [] if entry.needs_argument else [entry.choice]
    return plain + [f"{entry.choice}:{value}" for value in values]


NEAR = "near"
MOST_RANKS = 256  # ranks that are mapped where nobody asked for it
LESS = 0.99  # of what crosses levels under the same layout without it: then it is worth a look


def layouts_of(setting: Setting, ranks: int) -> list[str]:
    """What to try where nobody says: over levels, ranks that are far apart on purpose, and near ones."""
    levels = [f"scatter:{setting.levels[0][0]}"] if setting.levels else []
    return ["block", "cyclic", *levels, *([NEAR] if setting.levels and 0 < ranks <= MOST_RANKS else [])]


def point_of(setting: Setting, combination: Mapping[str, object], asked: bool) -> Point | None:
    """The point of a combination, whose layout may be `near`; None where that gains nothing and nobody asked for it."""
    if combination["layout"] != NEAR:
        return make_point(setting, combination)
    block = make_point(setting, {**combination, "layout": "block"})
    weights, slots = graph(schedule(block)), place(block.layout, block.ranks)
    columns = [np.asarray(column) for _, column in setting.levels]
    node = near(weights, slots, columns)
    gain = crossings(weights, node, columns) <= LESS * crossings(weights, slots, columns)
    return make_point(setting, {**combination, "layout": write_nodes(node)}) if gain or asked else None


def crossings(weights, node: np.ndarray, columns: Sequence[np.ndarray]) -> float:
    """What is sent between ranks, times the levels that it crosses."""
    pairs = weights.tocoo()
    ends = node[pairs.row], node[pairs.col]
    crossed = (ends[0] != ends[1]).astype(float)
    for column in columns:
        crossed += column[ends[0]] != column[ends[1]]
    return float((pairs.data * crossed).sum())


CELLS = 2_000_000  # draws × messages of one price
SEVERAL = 4  # choices that a sentence names


@dataclass(frozen=True, eq=False)
class Panel:
    """What every family says that prices all candidates, and why the others are silent."""

    prices: Mapping[str, np.ndarray]  # (draws, candidates); the first row is the estimate
    periods: Mapping[str, np.ndarray]  # between waves; NaN where the family says nothing about a stream
    widening: Mapping[str, np.ndarray]  # beyond what was probed, as a standard deviation of a logarithm
    alone: Mapping[str, np.ndarray]  # how many times as long as priced the messages take, each alone
    doubted: Mapping[str, Sequence[str]]  # what it doubts of each candidate, or ok
    through: Mapping[str, Sequence[float]]  # the share of packets that gets through, by those who know the buffers
    silent: Mapping[str, str]  # why, by family
    shaky: Mapping[str, str]  # what is doubted of streams alone, by family

    @property
    def doubts(self) -> list[str]:
        """What who doubts, by candidate; empty where nobody does."""
        return [self._named(texts) for texts in zip(*self.doubted.values(), strict=True)]

    def _named(self, texts: Sequence[str]) -> str:
        """A text for each family, behind the names of those who say it."""
        families = _by_text(dict(zip(self.doubted, texts, strict=True)))
        families.pop(PriceStatus.OK.value, None)
        return "; ".join(f"{', '.join(names)}: {text}" for text, names in families.items())

    def streams(self) -> list[str]:
        """Who doubts times between waves, and whether these are by others."""
        saying = self.streaming
        end = "nobody knows better" if self.shaky.keys() & set(saying) else "those times are by others"
        texts = _by_text(self.shaky if saying else {})
        return [f"between waves {', '.join(names)}: {why}; {end}" for why, names in texts.items()]

    def unprobed(self, of_side: Sequence[bool]) -> dict[str, str]:
        """The families that some of these candidates were not probed for, and where not."""
        said = {
            name: [text for text, own in zip(texts, of_side, strict=True) if own and PriceStatus.NOT_PROBED.of(text)]
            for name, texts in self.doubted.items()
        }
        return {name: texts[0] for name, texts in said.items() if texts}

    def losses(self, choices: Sequence[str]) -> list[str]:
        """Which of the choices lose packets, and whose prices know nothing of that."""
        lossy = {
            choice: share
            for shares in self.through.values()
            for choice, share in sorted(zip(choices, shares, strict=True), key=lambda pair: pair[1])
            if share < 1
        }
        if not lossy:
            return []
        named = ", ".join(f"{choice} {100 * (1 - share):.0f} %" for choice, share in list(lossy.items())[:SEVERAL])
        more = f" and {len(lossy) - SEVERAL} more" if len(lossy) > SEVERAL else ""
        blind = [name for name in self.prices if name not in self.through]
        rest = f"; {', '.join(blind)} {'does' if len(blind) == 1 else 'do'} not see that" if blind else ""
        return [
            f"by {', '.join(self.through)} a buffer overflows and packets have to be sent again: {named}{more}{rest}"
        ]

    @property
    def streaming(self) -> list[str]:
        """The families that say something about a stream; of these that do not doubt it, if any."""
        saying = [name for name, times in self.periods.items() if np.isfinite(times).all() and (times > 0).all()]
        return [name for name in saying if name not in self.shaky] or saying

    def period(self, weights: Mapping[str, float]) -> np.ndarray:
        """The weighted geometric mean over the families that say something about a stream."""
        saying = self.streaming
        total = sum(weights[name] for name in saying)
        if not np.all(total):  # somewhere
            return np.full(len(next(iter(self.periods.values()))), np.nan)
        return np.exp(sum(weights[name] * np.log(self.periods[name]) for name in saying) / total)


def _by_text(said: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of those who say it."""
    names: dict[str, list[str]] = {}
    for name, text in said.items():
        names.setdefault(text, []).append(name)
    return names


def ask(sets: Mapping[str, ParameterSet], patterns: Sequence[Schedule], streams: bool = True) -> Panel:
    """Has every family price all candidates, and streams of them if asked. One that cannot, or that is blind to these
    sizes, is silent."""
    longest = max(pattern.messages for pattern in patterns)
    members, silent = {}, {}
    for name, parameters in sets.items():
        try:
            members[name] = Member.of(parameters, longest)
        except UserError as error:
            silent[name] = error.message
    for number, pattern in enumerate(patterns, 1):
        stream = Stream(pattern) if streams else None  # one for all: what is known of its steps stays known
        for name in [name for name in members if name not in silent]:
            try:
                with within(f"choice {number} of {len(patterns)} by {name}"):
                    members[name].say(pattern, stream)
            except UserError as error:
                silent[name] = error.message
    voters = {name: member for name, member in members.items() if name not in silent}
    return Panel(
        {name: np.stack(member.costs, axis=-1) for name, member in voters.items()},
        {name: np.array(member.periods) for name, member in voters.items()},
        {name: np.array(member.widening) for name, member in voters.items()},
        {name: np.array(member.alone) for name, member in voters.items()},
        {name: member.doubts for name, member in voters.items()},
        {name: member.through for name, member in voters.items() if len(member.through) == len(patterns)},
        silent,
        {name: member.shaky[0] for name, member in voters.items() if member.shaky},
    )


@dataclass(frozen=True, eq=False)
class Member:
    """A family of the panel with its values, and what it has said so far, candidate by candidate."""

    parameters: ParameterSet
    model: Model
    costs: list[np.ndarray] = field(default_factory=list)
    periods: list[float] = field(default_factory=list)
    widening: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    through: list[float] = field(default_factory=list)
    shaky: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, parameters: ParameterSet, messages: int) -> "Member":
        """With fewer draws where a schedule is long."""
        return cls(parameters, Model.of_set(parameters, max(FEWEST_DRAWS, CELLS // max(messages, 1))))

    def say(self, pattern: Schedule, stream: Stream | None) -> None:
        one_size = stack([pattern])
        (validity,) = assess_validity(self.model.estimate, self.parameters, one_size)
        doubt = validity.text
        if not validity.has_weight:
            raise UserError(doubt)
        cost = np.broadcast_to(self.model.cost(pattern), self.model.rows)
        if not (np.isfinite(cost).all() and cost[0] > 0):
            raise UserError("it prices something at 0, or at no number")
        period = np.nan
        if stream and says(self.model.entry):
            period = stream.period(self.model.entry, lambda cost, waves: cost(self.model.estimate, waves))
            (of_stream,) = assess_validity(self.model.estimate, self.parameters, one_size, ENDLESS)
            self.shaky.extend([of_stream.text] if of_stream != validity else [])
        sees_loss = self.model.entry.through
        if sees_loss and (share := sees_loss(one_size, self.model.estimate.values)) is not None:
            self.through.append(float(share[0]))
        self.doubts.append(doubt)
        self.widening.append(float(np.log(widening(self.model.entry, self.parameters, one_size)[0]) / NORMAL))
        self.alone.extend(single_message_ratios(self.parameters, one_size))
        self.costs.append(np.maximum(cost, cost[0] * 1e-6))
        self.periods.append(float(np.ravel(period)[0]))
