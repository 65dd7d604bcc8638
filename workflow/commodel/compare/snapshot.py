"""What results, a comparison or a parameter set say at one time: measured points and fitted values with their
intervals, and how they came about. Made to be laid beside another time's."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from commodel.errors import UserError, one_line
from commodel.files.atomic import read_json
from commodel.files.columns import COMPARISON
from commodel.files.paths import AnyPath, SafePath
from commodel.files.results import Results
from commodel.files.sets import read_parameters
from commodel.files.tables import read_table
from commodel.parameters import ParameterSet
from commodel.plan.file import load_plan
from commodel.results.provenance import read_program
from commodel.units import format_bytes, over

POINT, PARAMETER = "point", "parameter"
PROGRAM = ("mpi", "compiler", "flags", "clock")
IGNORED = {"batch", "date", "platform", "seeds", "slurm_job"}  # of the provenance: other from day to day, or no matter

NOWHERE: Mapping[str, str] = MappingProxyType({})
Key = tuple[str, str, str]  # kind, platform, name


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number with its 95 % interval. `identity`: of a point, that of its messages on its platform; `messages`: on
    any, where that is known. `known`: the data tell it."""

    value: float
    low: float
    high: float
    unit: str
    identity: str = ""
    known: bool = True
    messages: str = ""


@dataclass(frozen=True)
class Snapshot:
    name: str
    quantities: dict[Key, Quantity]
    about: dict[tuple[str, str], str] = field(default_factory=dict)  # by platform and what it is
    simulated: frozenset[str] = frozenset()  # platforms

    @property
    def platforms(self) -> set[str]:
        return {platform for _, platform, _ in self.quantities}


def read(path: Path) -> Snapshot:
    """Of a folder of results, a comparison (.csv) or a parameter set (.yaml)."""
    name = one_line(path.name or str(path), 80)
    if path.is_dir():
        return _results(path, name)
    safe = SafePath.given(path, path.parent)
    if path.suffix == ".csv":
        quantities, simulated = _points(safe)
        return Snapshot(name, quantities, {}, simulated)
    if path.suffix in (".yaml", ".yml"):
        parameters = read_parameters(safe)
        return Snapshot(name, dict(values_of(parameters)), {}, _marked([parameters]))
    wanted = "a folder of results, a report (.xlsx), a comparison (.csv) or a parameter set (.yaml)"
    raise UserError(f"wanted {wanted}", file=path)


def _results(path: Path, name: str) -> Snapshot:
    results = Results.of(path)
    plan = load_plan(results.plan)
    anywhere = {point.id: replace(point, platform="").id for point in plan.points}
    quantities, simulated = _points(results.table("comparison"), anywhere)
    sets = [read_parameters(file) for platform in plan.platforms for file in results.sets(platform)]
    for parameters in sets:
        quantities |= dict(values_of(parameters))
    seen: dict[tuple[str, str], set[str]] = {}
    for batch in plan.batches:
        if (file := results.provenance(batch.name)).exists():
            about = {key: _text(value) for key, value in read_json(file).items() if key not in IGNORED}
            programs = [read_program(program) for program in results.programs(batch.name)]
            about |= {key: ", ".join(sorted({getattr(program, key) for program in programs})) for key in PROGRAM}
            about["hosts"] = ", ".join(sorted({host for program in programs for host in program.hosts}))
            for key, text in about.items():
                seen.setdefault((batch.platform, key), set()).add(text)
    about = {where: "; ".join(sorted(texts - {""})) for where, texts in seen.items()}
    return Snapshot(name, quantities, about, simulated | _marked(sets))


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return one_line(text, 400)


def _points(path: AnyPath, anywhere: Mapping[str, str] = NOWHERE) -> tuple[dict[Key, Quantity], frozenset[str]]:
    frame = read_table(path, COMPARISON).drop_duplicates("point")
    return points_of(frame.itertuples(), anywhere), frozenset(frame.loc[frame["simulated"], "platform"])


def points_of(rows: Iterable, anywhere: Mapping[str, str] = NOWHERE) -> dict[Key, Quantity]:
    """Of rows with the columns of a comparison, those that were measured. `anywhere`: by point, the identity that its
    messages have on a platform of any name."""
    quantities = {}
    for row in rows:
        waves = getattr(row, "waves", 1)
        words = f"{row.operation} {row.choice}", over(row.leaves, row.ranks), row.layout, format_bytes(int(row.bytes))
        name = ", ".join(words)
        name += f", {int(waves)} waves" if waves > 1 else ""
        times = row.measured, row.measured_low, row.measured_high
        if row.measured == row.measured:
            quantities[POINT, row.platform, one_line(name)] = Quantity(
                *times, "s", row.point, messages=anywhere.get(row.point, "")
            )
    return quantities


def values_of(parameters: ParameterSet) -> Iterator[tuple[Key, Quantity]]:
    for name, estimate in parameters.values.items():
        interval = estimate.value, estimate.low, estimate.high
        key = PARAMETER, parameters.platform, one_line(f"{parameters.family} {name}")
        yield key, Quantity(*interval, estimate.unit, known=estimate.known)


def _marked(sets: list[ParameterSet]) -> frozenset[str]:
    return frozenset(parameters.platform for parameters in sets if parameters.simulated)
