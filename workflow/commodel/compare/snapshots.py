"""Snapshots of comparisons, the difference of two, and their history.

A snapshot has the measured points and fitted values of results, a comparison or a parameter set,
with intervals and provenance. The difference of two has the ratio of each number, whether the
intervals explain it, and what differs in the provenance. A history compares several snapshots with
the first.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from commodel.errors import UserError, make_printable
from commodel.files.atomic import read_json
from commodel.files.parameter_sets import read_parameters
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.tables import COMPARISON, read_table
from commodel.models.keys import name_piece, parse_key
from commodel.parameters import ParameterSet
from commodel.plan.planning import load_plan
from commodel.records import DEFAULT_LABEL, LIBRARY
from commodel.results.provenance import read_program
from commodel.stats import NEGLIGIBLE_DIFFERENCE
from commodel.units import format_bytes, format_extent

POINT, PARAMETER = "point", "parameter"
PROGRAM_FIELDS = ("mpi", "compiler", "flags", "clock")
# fields that differ between any two runs
IGNORED_PROVENANCE = {"batch", "date", "platform", "seeds", "slurm_job"}

NO_DIGESTS: Mapping[str, str] = MappingProxyType({})
Key = tuple[str, str, str]  # kind, platform, name


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its 95 % interval. `identity` is the digest of a point's messages and platform,
    `message_digest` that of the messages only, empty if unknown. `known`: the data determine the
    number."""

    value: float
    low: float
    high: float
    unit: str
    identity: str = ""
    known: bool = True
    message_digest: str = ""


@dataclass(frozen=True)
class Snapshot:
    name: str
    quantities: dict[Key, Quantity]
    # provenance, by platform and field
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    simulated: frozenset[str] = frozenset()  # platforms

    @property
    def platforms(self) -> set[str]:
        return {platform for _, platform, _ in self.quantities}


def read_results_snapshot(path: Path) -> Snapshot:
    """Return the snapshot of a folder of results, a comparison (.csv) or a parameter set
    (.yaml)."""
    name = make_printable(path.name or str(path), 80)
    if path.is_dir():
        return _read_results(path, name)
    safe = SafePath.of_argument(path, path.parent)
    if path.suffix == ".csv":
        quantities, simulated = _read_points(safe)
        return Snapshot(name=name, quantities=quantities, texts={}, simulated=simulated)
    if path.suffix in (".yaml", ".yml"):
        parameters = read_parameters(safe)
        return Snapshot(
            name=name,
            quantities=dict(list_parameter_quantities(parameters)),
            texts={},
            simulated=_find_simulated([parameters]),
        )
    accepted = (
        "a folder of results, a report (.xlsx), a comparison (.csv) or a parameter set (.yaml)"
    )
    raise UserError(f"wanted {accepted}", file=path)


def _read_results(path: Path, name: str) -> Snapshot:
    results = Results.of(path)
    plan = load_plan(results.plan)
    digests = {point.id: replace(point, platform="").id for point in plan.points}
    quantities, simulated = _read_points(results.table("comparison"), digests)
    sets = [read_parameters(file) for platform in plan.platforms for file in results.sets(platform)]
    for parameters in sets:
        quantities |= dict(list_parameter_quantities(parameters))
    texts_of_batch: dict[tuple[str, str], set[str]] = {}
    for batch in plan.batches:
        file = results.provenance(batch.name)
        if file.exists():
            fields = {
                key: _format_text(value)
                for key, value in read_json(file).items()
                if key not in IGNORED_PROVENANCE
            }
            programs = [read_program(program) for program in results.programs(batch.name)]
            for key in PROGRAM_FIELDS:
                fields[key] = ", ".join(sorted({getattr(program, key) for program in programs}))
            hosts = {host for program in programs for host in program.hosts}
            fields["hosts"] = ", ".join(sorted(hosts))
            for key, text in fields.items():
                texts_of_batch.setdefault((batch.platform, key), set()).add(text)
    fields_of_platform = {
        where: "; ".join(sorted(texts - {""})) for where, texts in texts_of_batch.items()
    }
    return Snapshot(
        name=name,
        quantities=quantities,
        texts=fields_of_platform,
        simulated=simulated | _find_simulated(sets),
    )


def _format_text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return make_printable(text, 400)


def _read_points(
    path: AnyPath, message_digests: Mapping[str, str] = NO_DIGESTS
) -> tuple[dict[Key, Quantity], frozenset[str]]:
    frame = read_table(path, COMPARISON).drop_duplicates("point")
    return select_measured_quantities(frame.itertuples(), message_digests), frozenset(
        frame.loc[frame["simulated"], "platform"]
    )


def select_measured_quantities(
    rows: Iterable, message_digests: Mapping[str, str] = NO_DIGESTS
) -> dict[Key, Quantity]:
    """Return the measured points of rows with the columns of a comparison. `message_digests` are
    those of each point's messages, without the platform."""
    quantities = {}
    for row in rows:
        waves = getattr(row, "waves", 1)
        parts = (
            f"{row.operation} {DEFAULT_LABEL if row.alternative == LIBRARY else row.alternative}",
            format_extent(row.leaves, row.ranks),
            row.layout,
            format_bytes(int(row.bytes)),
        )
        name = ", ".join(parts)
        name += f", {int(waves)} waves" if waves > 1 else ""
        times = row.measured, row.measured_low, row.measured_high
        if row.measured == row.measured:
            quantities[POINT, row.platform, make_printable(name)] = Quantity(
                *times, "s", row.point, message_digest=message_digests.get(row.point, "")
            )
    return quantities


def list_parameter_quantities(parameters: ParameterSet) -> Iterator[tuple[Key, Quantity]]:
    for name, estimate in parameters.values.items():
        interval = estimate.value, estimate.low, estimate.high
        key = PARAMETER, parameters.platform, make_printable(f"{parameters.model} {name}")
        yield key, Quantity(*interval, estimate.unit, known=estimate.known)


def _find_simulated(sets: list[ParameterSet]) -> frozenset[str]:
    return frozenset(parameters.platform for parameters in sets if parameters.simulated)


SAME = "same"
SLOWER = "slower"
FASTER = "faster"
LARGER = "larger"
SMALLER = "smaller"
OTHER_MESSAGES = "other messages"
NOT_DETERMINED = "not determined by the data"
MAX_NAMED_QUANTITIES = 4  # quantities of only one snapshot that a sentence names
ONLY_IN_OLD, ONLY_IN_NEW = "only in the old one", "only in the new one"
CHANGED = (SLOWER, FASTER, LARGER, SMALLER)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a number: `ratio` is new over old, with the 95 % interval of two independent
    measurements; NaN if there is none."""

    kind: str
    platform: str
    name: str
    unit: str
    old: float
    new: float
    ratio: float
    low: float
    high: float
    verdict: str

    @property
    def label(self) -> str:
        return _make_label(self.kind, self.name)

    def exceeds(self, share: float) -> bool:
        """Return whether the change exceeds the share, either way, and is not explained by the
        intervals. A value that was or is 0 has no ratio and exceeds every share."""
        if self.verdict not in (SAME, *CHANGED):
            return False
        if not self.ratio > 0:
            return self.verdict != SAME
        return (self.low > 1 or self.high < 1) and max(self.ratio, 1 / self.ratio) > 1 + share


def _make_label(kind: str, name: str) -> str:
    """Return the name of a point or a parameter, with the meaning of a value of a function in
    pieces."""
    piece = name_piece(parse_key(name)) if kind == PARAMETER else ""
    return f"{name} ({piece})" if piece else name


def list_changes(old: Snapshot, new: Snapshot) -> list[Change]:
    """Return the changes of all numbers of both snapshots, in the order of the old one. If each
    snapshot has a single platform, these two are compared, even if their names differ."""
    renamed = find_renamed_platform(old, new)
    new_values = {
        (kind, renamed.get(platform, platform), name): value
        for (kind, platform, name), value in new.quantities.items()
    }
    if not set(old.quantities) & set(new_values):
        raise UserError(f"{old.name} and {new.name} have no point and no parameter in common")
    # quantities of the new snapshot only keep their platform
    new_names = {old_name: name for name, old_name in renamed.items()}
    return [
        _make_change(
            key, old.quantities.get(key), new_values.get(key), new_names.get(key[1], key[1])
        )
        for key in dict.fromkeys([*old.quantities, *new_values])
    ]


def find_renamed_platform(old: Snapshot, new: Snapshot) -> dict[str, str]:
    """Return the old name of the new snapshot's platform, if both have a single one."""
    if old.platforms == new.platforms or not len(old.platforms) == len(new.platforms) == 1:
        return {}
    return {next(iter(new.platforms)): next(iter(old.platforms))}


def _make_change(
    key: tuple[str, str, str], old: Quantity | None, new: Quantity | None, platform: str
) -> Change:
    """Return one change; `platform` is the new snapshot's name of it."""
    kind, old_platform, name = key
    if old is None or new is None:
        either = new or old
        return Change(
            kind=kind,
            platform=old_platform if old else platform,
            name=name,
            unit=either.unit if either else "",
            old=old.value if old else math.nan,
            new=new.value if new else math.nan,
            ratio=math.nan,
            low=math.nan,
            high=math.nan,
            verdict=ONLY_IN_NEW if old is None else ONLY_IN_OLD,
        )
    if old.unit != new.unit:
        raise UserError(f"{name}: found the units {old.unit} and {new.unit}, wanted the same")
    ratio, low, high = _compute_ratio(old, new)
    if _have_other_messages(old, new, renamed=old_platform != platform):
        verdict = OTHER_MESSAGES
    elif not (old.known and new.known):
        verdict = NOT_DETERMINED
    elif abs(ratio - 1) < NEGLIGIBLE_DIFFERENCE:
        verdict = SAME
    elif ratio > 0:
        up, down = (SLOWER, FASTER) if kind == POINT else (LARGER, SMALLER)
        verdict = up if low > 1 else down if high < 1 else SAME
    else:
        is_distinct = old.high < new.low or new.high < old.low
        verdict = (LARGER if new.value > old.value else SMALLER) if is_distinct else SAME
    return Change(*key, old.unit, old.value, new.value, ratio, low, high, verdict)


def _have_other_messages(old: Quantity, new: Quantity, renamed: bool) -> bool:
    """Return whether two points have different messages. Identities contain the platform's name. If
    the platform was renamed, the digests of the messages are therefore compared, if both are
    known."""
    if renamed:
        return (
            bool(old.message_digest and new.message_digest)
            and old.message_digest != new.message_digest
        )
    return old.identity != new.identity


def _compute_ratio(old: Quantity, new: Quantity) -> tuple[float, float, float]:
    """Return the ratio and its interval; errors of the logarithms are assumed to be independent."""
    if old.value == new.value:
        return (1.0, 1.0, 1.0) if old.value == 0 else (1.0, *_compute_interval(1.0, old, new))
    if min(old.value, new.value, old.low, new.low) <= 0:
        return math.nan, math.nan, math.nan
    ratio = new.value / old.value
    return ratio, *_compute_interval(ratio, old, new)


def _compute_interval(ratio: float, old: Quantity, new: Quantity) -> tuple[float, float]:
    if min(old.value, old.low, new.low) <= 0:
        return ratio, ratio
    below = math.hypot(math.log(new.value / new.low), math.log(old.high / old.value))
    above = math.hypot(math.log(new.high / new.value), math.log(old.value / old.low))
    return ratio * math.exp(-below), ratio * math.exp(above)


def compare_provenance(old: Snapshot, new: Snapshot) -> list[tuple[str, str, str, str]]:
    """Return the differences of provenance: platform, subject, old and new text. Empty if either
    has no provenance."""
    if not (old.texts and new.texts):
        return []
    renamed = find_renamed_platform(old, new)
    new_texts = {
        (renamed.get(platform, platform), subject): text
        for (platform, subject), text in new.texts.items()
    }
    keys = dict.fromkeys([*old.texts, *new_texts])
    rows = [(*key, old.texts.get(key, ""), new_texts.get(key, "")) for key in keys]
    return [row for row in rows if row[2] != row[3]]


def describe_changes(old: Snapshot, new: Snapshot, changes: Sequence[Change]) -> Iterator[str]:
    """Yield sentences: how many numbers of each kind changed, by how much, and some that only one
    snapshot has."""
    simulated = sorted(old.simulated | new.simulated)
    if simulated:
        yield f"simulated, not measured on hardware: {', '.join(simulated)}"
    for kind in dict.fromkeys(change.kind for change in changes):
        of_kind = [change for change in changes if change.kind == kind]
        with_ratio = [
            change for change in of_kind if change.ratio > 0 and change.verdict in (SAME, *CHANGED)
        ]
        verdicts = Counter(change.verdict for change in of_kind)
        text = ", ".join(
            f"{verdicts[verdict]} {verdict}"
            for verdict in dict.fromkeys(VERDICTS)
            if verdicts[verdict]
        )
        if with_ratio and kind == POINT:
            mean = math.exp(sum(math.log(change.ratio) for change in with_ratio) / len(with_ratio))
            text += f"; new / old {mean:.3f} on average"
        yield f"{len(of_kind)} {kind}s: {text}"
    for verdict in (ONLY_IN_OLD, ONLY_IN_NEW):
        names = [
            f"{change.platform} {change.name}" for change in changes if change.verdict == verdict
        ]
        if names:
            more_text = (
                f" and {len(names) - MAX_NAMED_QUANTITIES} more"
                if len(names) > MAX_NAMED_QUANTITIES
                else ""
            )
            yield f"{verdict}: {'; '.join(names[:MAX_NAMED_QUANTITIES])}{more_text}"


VERDICTS = (SAME, *CHANGED, OTHER_MESSAGES, NOT_DETERMINED, ONLY_IN_OLD, ONLY_IN_NEW)


class HistoryLine(NamedTuple):
    """A line of a history: ratios to the first snapshot. For points it is the geometric mean over
    the points of an operation that both snapshots have."""

    kind: str
    platform: str
    name: str
    ratios: list[float]  # NaN: nothing in common with the first

    @property
    def label(self) -> str:
        return _make_label(self.kind, self.name)

    @property
    def change(self) -> float:
        """The largest logarithm of a ratio, without its sign."""
        return max(abs(math.log(ratio)) for ratio in self.ratios if not math.isnan(ratio))


def compare_with_first(snapshots: Sequence[Snapshot]) -> list[HistoryLine]:
    first, *later = snapshots
    lines: dict[tuple[str, str, str], HistoryLine] = {}
    for number, snapshot in enumerate(later, 1):
        logs: dict[tuple[str, str, str], list[float]] = {}
        for change in list_changes(first, snapshot):
            if change.ratio > 0 and change.verdict in (SAME, *CHANGED):
                name = change.name.partition(" ")[0] if change.kind == POINT else change.name
                logs.setdefault((change.kind, change.platform, name), []).append(
                    math.log(change.ratio)
                )
        for key, logs_of_line in logs.items():
            line = lines.setdefault(key, HistoryLine(*key, [1.0] + [math.nan] * len(later)))
            line.ratios[number] = math.exp(sum(logs_of_line) / len(logs_of_line))
    return list(lines.values())
