"""What is done with what strangers hand us. Every reader is a function of an input and of a folder that may be written
to; it returns, or raises a UserError."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from openpyxl import Workbook
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

from commodel import units
from commodel.api.predictions import list_points
from commodel.api.recommendations import list_workloads
from commodel.cli.kernels import read_partition_input
from commodel.errors import UserError
from commodel.files import expressions, quantities
from commodel.interchange import mrnet, taulop
from commodel.models.parameter_sets import read_set
from commodel.models.speeds import SPEED_FORMS, read_speeds
from commodel.patterns.build import complete_layout
from commodel.patterns.partitions.arrangement import arrange_in_columns
from commodel.patterns.partitions.shares import partition_constant, partition_geometric
from commodel.patterns.points import Setting, make_point
from commodel.patterns.trees.topologies import make_tree
from commodel.plan.config import load_experiment, load_platform
from commodel.plan.experiments import AXES
from commodel.plan.planning import load_plan, make_plan, make_setting
from commodel.platforms.tools import ROOT
from commodel.predictions.predictions import predict
from commodel.records import Plan
from commodel.results.collection import collect_samples, summarize_raw
from commodel.results.raw_samples import compute_checksum
from tests.fuzz import forms

Run = Callable[[object, Path], object]


def of_file(name: str, read: Callable[[Path], object]) -> Run:
    """Reads the input as a file."""

    def run(content: bytes | str, folder: Path) -> object:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return read(path)

    return run


def samples(pattern: str) -> list[bytes]:
    contents = [path.read_bytes() for path in sorted(ROOT.glob(pattern))]
    assert contents, pattern
    return contents


def planned(path: Path) -> Plan:
    """As `commodel plan` does, beside platforms that are in order."""
    load_experiment(path)
    return make_plan(str(path), ROOT)


def placed(path: Path) -> None:
    platform = load_platform(path)
    setting = make_setting(platform)
    make_point(setting, {"operation": "bcast", "algorithm": "binomial", "ranks": 4, "bytes": 8})
    (path.parent / "experiment.yaml").write_text(forms.EXPERIMENT)
    folder = path.parent / "params" / "platforms"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / path.name).write_bytes(path.read_bytes())
    (folder / "net.xml").write_bytes((path.parent / "net.xml").read_bytes())
    make_plan(str(path.parent / "experiment.yaml"), path.parent)


def with_network(content: bytes, folder: Path) -> None:
    (folder / "net.xml").write_bytes(samples("params/platforms/*.xml")[0])
    of_file("machine.yaml", placed)(content, folder)


def network(content: bytes, folder: Path) -> None:
    (folder / "net.xml").write_bytes(content)
    (folder / "machine.yaml").write_text(forms.SIMULATED)
    load_platform(folder / "machine.yaml")


def tau_lop(content: bytes, folder: Path) -> None:
    (folder / "IB.txt").write_text(forms.CHANNEL)
    for name in ("SHM.txt", "gamma.txt"):
        (folder / name).write_bytes(content)
        taulop.read_tables(folder)
        (folder / name).unlink()


def predicted(path: Path) -> None:
    """A parameter set that can be read predictions, or says why not."""
    parameters = read_set(path)
    some = [
        make_point(Setting.unlimited(), {"operation": "bcast", "algorithm": "binomial", "ranks": 5, "bytes": size})
        for size in (0, 1, 100_000)
    ]
    some.append(make_point(Setting.unlimited(), {"operation": "reduce", "topology": "groups:2,3", "bytes": 64}))
    predict(parameters, some)


def balanced(path: Path) -> None:
    """Speeds that can be read balance a matrix, however steep they are."""
    speeds = read_speeds(path)
    for kernel in speeds.kernels:
        for form in SPEED_FORMS:
            curves = speeds.curves(kernel, [*speeds.kernels[kernel].kinds], form)
            for share in (partition_geometric, partition_constant):
                either(lambda share=share, curves=curves: arrange_in_columns(share(curves, 256), 16))


def workbook(content: bytes, folder: Path) -> None:
    """A workbook whose cells say what the lines say, numbers as such; and the lines themselves."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Partition")
    for line in content.decode("utf-8", "replace").splitlines():
        either(sheet.append, [_cell(text) for text in line.split(",")])
    book.save(folder / "p.xlsx")
    for read in (
        lambda: read_partition_input(folder / "p.xlsx"),
        lambda: of_file("q.xlsx", read_partition_input)(content, folder),
    ):
        either(read)
    of_file("p.csv", read_partition_input)(content, folder)


def _cell(text: str) -> object:
    """A number, or what openpyxl takes as text."""
    with suppress(ValueError):
        if len(text) < 20:
            return float(text)
    return ILLEGAL_CHARACTERS_RE.sub("", text)


@lru_cache
def plan_text() -> bytes:
    plan = make_plan(str(ROOT / "params" / "experiments" / "demo.yaml"), ROOT).as_json()
    for batch in plan["batches"]:
        batch["points"], batch["cases"] = batch["points"][:2], batch["cases"][:2]
    return json.dumps(plan, indent=1).encode()


def plan_file(path: Path) -> None:
    plan = load_plan(path)
    for batch in plan.batches:
        _ = batch.ids, batch.minutes
    collect_samples(plan, path.parent / "raw", unfinished=True)


def signed(line: bytes) -> bytes:
    """A row that lacks its checksum gets it: else whatever is odd in it would be refused for that alone."""
    try:
        return line + compute_checksum(line[:-1].decode()).encode() if line.endswith(b",") else line
    except UnicodeDecodeError:
        return line


def raw_file(content: bytes, folder: Path) -> None:
    (folder / "plan.json").write_bytes(plan_text())
    plan = load_plan(folder / "plan.json")
    batch = plan.batches[0]
    place = folder / "raw" / batch.name
    place.mkdir(parents=True, exist_ok=True)
    lines = content.replace(b"CASE", batch.ids[0].encode()).split(b"\n")
    (place / f"{batch.ids[0]}.csv").write_bytes(b"\n".join(map(signed, lines)))
    observations, _ = collect_samples(plan, folder / "raw", unfinished=True)
    summarize_raw(observations)


def quantity(text: str, folder: Path) -> None:
    parsers = (units.parse_bytes, units.parse_seconds, units.parse_fraction, units.parse_number, units.parse_count)
    for parse in parsers:
        either(parse, text)
    either(quantities.expand_axis, text)
    either(lambda: quantities.expand_axis(text, units.parse_count))


def either(function: Callable, *arguments: object) -> object:
    """A mistake in one is no reason not to try the next."""
    try:
        return function(*arguments)
    except UserError:
        return None


def expression(text: str, folder: Path) -> None:
    condition = expressions.parse_expression(text, AXES)
    for ranks in (0, 2, 3.5):
        either(condition, dict.fromkeys(AXES, "binomial") | {"ranks": ranks, "bytes": 1 << 50, "nodes": None})


def spec_of_tree(spec: str, folder: Path) -> None:
    make_tree.__wrapped__(spec)


def spec_of_layout(spec: str, folder: Path) -> None:
    for ranks in (2, 12, 1 << 16):
        either(complete_layout, Setting("p", 64, 64, types=(("fat", 8), ("thin", 56))), spec, ranks)
        either(complete_layout, Setting.unlimited(), spec, ranks)


def options(given: tuple, folder: Path) -> None:
    operation, algorithm, topology, ranks, sizes, layout = given
    either(list_points, operation, algorithm, topology, ranks, sizes, layout)
    either(list_workloads, (operation,), None, ranks, sizes)


def hosts(path: Path) -> None:
    mrnet.name_hosts(make_tree("flat:3"), path)
