"""Functions that read fuzzed inputs. Each takes an input and a folder for its files; it returns or
raises a UserError."""

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
from commodel.errors import UserError
from commodel.files import expressions, quantities
from commodel.interchange import mrnet
from commodel.interchange.folders.reading import FolderProperties, read_folder
from commodel.interchange.folders.tables import EvidenceTable
from commodel.models.parameter_sets import read_set
from commodel.patterns.build import complete_layout
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.trees.topologies import make_tree
from commodel.plan.config import load_experiment, load_platform
from commodel.plan.experiments import AXES
from commodel.plan.planning import load_plan, make_plan, make_resources
from commodel.platforms.tools import ROOT
from commodel.predictions.predictions import predict
from commodel.records import Plan
from commodel.results.collection import collect_samples, summarize_raw
from commodel.results.raw_samples import compute_checksum
from commodel_formats import taulop
from commodel_kernels.partitioning import read_partition_input
from commodel_kernels.partitions.arrangement import arrange_in_columns
from commodel_kernels.partitions.shares import partition_constant, partition_geometric
from commodel_kernels.speeds import SPEED_FORMS, read_speeds
from tests.fuzz import forms

Run = Callable[[object, Path], object]


def of_file(name: str, read: Callable[[Path], object]) -> Run:
    """Return a function that writes the input to a file and reads it."""

    def run(content: bytes | str, folder: Path) -> object:
        path = folder / name
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        )
        return read(path)

    return run


def samples(pattern: str) -> list[bytes]:
    contents = [path.read_bytes() for path in sorted(ROOT.glob(pattern))]
    assert contents, pattern
    return contents


def plan_experiment(path: Path) -> Plan:
    """Plan an experiment as `commodel plan` does, with valid platforms."""
    load_experiment(path)
    return make_plan(str(path), ROOT)


def plan_on_platform(path: Path) -> None:
    platform = load_platform(path)
    resources = make_resources(platform)
    make_point(resources, {"operation": "bcast", "algorithm": "binomial", "ranks": 4, "bytes": 8})
    (path.parent / "experiment.yaml").write_text(forms.EXPERIMENT)
    folder = path.parent / "params" / "platforms"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / path.name).write_bytes(path.read_bytes())
    (folder / "net.xml").write_bytes((path.parent / "net.xml").read_bytes())
    make_plan(str(path.parent / "experiment.yaml"), path.parent)


def read_platform(content: bytes, folder: Path) -> None:
    (folder / "net.xml").write_bytes(samples("params/platforms/*.xml")[0])
    of_file("machine.yaml", plan_on_platform)(content, folder)


def read_network(content: bytes, folder: Path) -> None:
    (folder / "net.xml").write_bytes(content)
    (folder / "machine.yaml").write_text(forms.SIMULATED)
    load_platform(folder / "machine.yaml")


def read_taulop_tables(content: bytes, folder: Path) -> None:
    (folder / "IB.txt").write_text(forms.CHANNEL)
    for name in ("SHM.txt", "gamma.txt"):
        (folder / name).write_bytes(content)
        taulop.read_tables(folder)
        (folder / name).unlink()


def predict_with_set(path: Path) -> None:
    """Read a parameter set and predict four points with it."""
    parameters = read_set(path)
    points = [
        make_point(
            PlatformResources.unlimited(),
            {"operation": "bcast", "algorithm": "binomial", "ranks": 5, "bytes": size},
        )
        for size in (0, 1, 100_000)
    ]
    points.append(
        make_point(
            PlatformResources.unlimited(),
            {"operation": "reduce", "topology": "groups:2,3", "bytes": 64},
        )
    )
    predict(parameters, points)


def partition_by_speeds(path: Path) -> None:
    """Read speeds and partition a matrix by them."""
    speeds = read_speeds(path)
    for kernel in speeds.kernels:
        for form in SPEED_FORMS:
            curves = speeds.curves(kernel, [*speeds.kernels[kernel].kinds], form)
            for share in (partition_geometric, partition_constant):
                allow_refusal(
                    lambda share=share, curves=curves: arrange_in_columns(share(curves, 256), 16)
                )


def read_partitions(content: bytes, folder: Path) -> None:
    """Read the lines as a partition three times: as cells of a workbook, as a workbook file, as a
    CSV file."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Partition")
    for line in content.decode("utf-8", "replace").splitlines():
        allow_refusal(sheet.append, [_make_cell(text) for text in line.split(",")])
    book.save(folder / "p.xlsx")
    for read in (
        lambda: read_partition_input(folder / "p.xlsx"),
        lambda: of_file("q.xlsx", read_partition_input)(content, folder),
    ):
        allow_refusal(read)
    of_file("p.csv", read_partition_input)(content, folder)


def _make_cell(text: str) -> object:
    """Return a number, or the text without characters that openpyxl refuses."""
    with suppress(ValueError):
        if len(text) < 20:
            return float(text)
    return ILLEGAL_CHARACTERS_RE.sub("", text)


@lru_cache
def make_plan_text() -> bytes:
    plan = make_plan(str(ROOT / "params" / "experiments" / "demo.yaml"), ROOT).as_json()
    for batch in plan["batches"]:
        batch["points"], batch["cases"] = batch["points"][:2], batch["cases"][:2]
    return json.dumps(plan, indent=1).encode()


def read_plan(path: Path) -> None:
    plan = load_plan(path)
    for batch in plan.batches:
        _ = batch.ids, batch.minutes
    collect_samples(plan, path.parent / "raw", unfinished=True)


def add_checksum(line: bytes) -> bytes:
    """Add the checksum if a row lacks it, so that the row is not refused for this reason alone."""
    try:
        return line + compute_checksum(line[:-1].decode()).encode() if line.endswith(b",") else line
    except UnicodeDecodeError:
        return line


def read_raw_samples(content: bytes, folder: Path) -> None:
    (folder / "plan.json").write_bytes(make_plan_text())
    plan = load_plan(folder / "plan.json")
    batch = plan.batches[0]
    batch_folder = folder / "raw" / batch.name
    batch_folder.mkdir(parents=True, exist_ok=True)
    lines = content.replace(b"CASE", batch.ids[0].encode()).split(b"\n")
    (batch_folder / f"{batch.ids[0]}.csv").write_bytes(b"\n".join(map(add_checksum, lines)))
    observations, _ = collect_samples(plan, folder / "raw", unfinished=True)
    summarize_raw(observations)


def parse_quantity(text: str, folder: Path) -> None:
    parsers = (
        units.parse_bytes,
        units.parse_seconds,
        units.parse_fraction,
        units.parse_number,
        units.parse_count,
    )
    for parse in parsers:
        allow_refusal(parse, text)
    allow_refusal(quantities.expand_axis, text)
    allow_refusal(lambda: quantities.expand_axis(text, units.parse_count))


def allow_refusal(function: Callable, *arguments: object) -> object:
    """Call a function and return its value; None if it raises a UserError."""
    try:
        return function(*arguments)
    except UserError:
        return None


def evaluate_expression(text: str, folder: Path) -> None:
    condition = expressions.parse_expression(text, AXES)
    for ranks in (0, 2, 3.5):
        allow_refusal(
            condition,
            dict.fromkeys(AXES, "binomial") | {"ranks": ranks, "bytes": 1 << 50, "nodes": None},
        )


def parse_tree_spec(spec: str, folder: Path) -> None:
    make_tree.__wrapped__(spec)


def parse_layout_spec(spec: str, folder: Path) -> None:
    for ranks in (2, 12, 1 << 16):
        allow_refusal(
            complete_layout,
            PlatformResources("p", 64, 64, types=(("fat", 8), ("thin", 56))),
            spec,
            ranks,
        )
        allow_refusal(complete_layout, PlatformResources.unlimited(), spec, ranks)


def expand_options(given: tuple, folder: Path) -> None:
    operation, algorithm, topology, ranks, sizes, layout = given
    allow_refusal(list_points, operation, algorithm, topology, ranks, sizes, layout)
    allow_refusal(list_workloads, (operation,), None, ranks, sizes)


GOOD_RUN = b"# OSU MPI Allreduce Latency Test v7.4\n# Size Avg Latency(us)\n4 1.0\n"


def import_folder(content: bytes, folder: Path) -> None:
    """Import a folder with a hostile file under several names. Another file in it is read, and the
    table that is written can be read again."""
    runs = folder / "runs" / "np8_ppn4"
    runs.mkdir(parents=True, exist_ok=True)
    for name in ("a.txt", "bcast.csv", "p.tar.gz", "good.out"):
        (runs / name).write_bytes(content)
    (runs / "good.out").write_bytes(GOOD_RUN)
    table = EvidenceTable()
    files = list(read_folder(folder / "runs", FolderProperties(), set()))
    assert len(files) == 4
    for file in files:
        added = table.add(file) if file.times else file
        assert "\n" not in added.reason
        assert added.times or added.reason
    assert any(file.path.endswith("good.out") and file.times for file in files)
    table.write(folder / "table.csv")
    assert len(EvidenceTable.read(folder / "table.csv").rows) == len(table.rows)


def read_hosts(path: Path) -> None:
    mrnet.name_hosts(make_tree("flat:3"), path)
