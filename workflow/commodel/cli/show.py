"""commodel show: list catalogues, and draw one entry.

The catalogues are operations, algorithms, topologies, layouts and models. The drawings are trees, placements of
ranks, messages of a pattern, and the network of an allocation.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commodel.cli._help import VerbGroup, make_option_group
from commodel.cli._options import PATH, format_option, pattern_options, platform_option, style_option
from commodel.cli._output import print_answer, print_rows, show_waiting
from commodel.errors import UserError, make_printable
from commodel.files.text_tables import find_table_width, format_table
from commodel.units import format_bytes, format_seconds, parse_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from commodel.models.families import Family
    from commodel.patterns.algorithms import Algorithm, TreeAlgorithm
    from commodel.patterns.libraries import Routine


OUTPUT = make_option_group("Output", style_option)


@click.group(
    cls=VerbGroup, examples=("commodel show algorithms bcast", "commodel show topology kary:2^3 --format text")
)
def show() -> None:
    """List algorithms, models and more, or draw one of them."""


@show.command(examples=("commodel show operations", "commodel show operations halo"))
@click.argument("name", required=False)
@OUTPUT
def operations(name: str | None, style: str) -> None:
    """List the operations, the meaning of `bytes` in each, and their parameters."""
    from commodel.patterns.operations import find_operation, list_operations

    entries = [find_operation(name)] if name else list_operations().values()
    rows = [{"operation": entry.name, "bytes": entry.bytes or "none", "mpi": entry.mpi or "none"} for entry in entries]
    if style == "table":
        print_rows(rows, style)
        rows = [
            {"of": entry.name, "parameter": f"{field.name}={field.form}", "meaning": field.title}
            for entry in entries
            for field in entry.parameters
        ]
        if rows:
            click.echo(f"\n{format_table(rows)}")
        return
    texts = ["; ".join(f"{field.name}={field.form}: {field.title}" for field in entry.parameters) for entry in entries]
    print_rows([row | {"parameters": text} for row, text in zip(rows, texts, strict=True)], style)


@show.command(examples=("commodel show algorithms bcast", "commodel show algorithms allreduce --libraries"))
@click.argument("operation", required=False)
@make_option_group(
    "MPI libraries",
    click.option("--libraries", is_flag=True, help="List functions of Open MPI and MPICH that send the same messages."),
)
@OUTPUT
def algorithms(operation: str | None, libraries: bool, style: str) -> None:
    """List the algorithms of all operations, or of one."""
    from commodel.patterns.operations import find_operation
    from commodel.registry import discover

    operation_name = find_operation(operation).name if operation else None
    rows = []
    for entry in sorted(discover("patterns.algorithms", "ALGORITHM").values(), key=lambda entry: entry.name):
        if operation_name in (None, entry.operation):
            rows += _list_library_functions(entry) if libraries else [_make_algorithm_row(entry)]
    print_rows(rows, style)


def _list_library_functions(entry: Algorithm | TreeAlgorithm) -> list[dict[str, str]]:
    """Return a row for each function of an MPI library that implements the algorithm; without any, one row with
    `none`."""
    names = {"operation": entry.operation, "algorithm": entry.form}
    rows = []
    for routine in getattr(entry, "mpi_functions", ()):
        row = names | {"library": routine.library, "function": routine.function}
        rows.append(row | {"operands": _describe_operand_order(entry, routine), "differs": routine.differs})
    return rows or [names | {"library": "none", "function": "", "operands": "", "differs": ""}]


def _describe_operand_order(entry: Algorithm | TreeAlgorithm, routine: Routine) -> str:
    """Return whether a library's function keeps the order of operands; empty if the operation is no reduction."""
    from commodel.patterns.operations import find_operation

    if not find_operation(entry.operation).reduces:
        return ""
    return "in order" if routine.keeps_order else "reordered"


def _make_algorithm_row(entry: Algorithm | TreeAlgorithm) -> dict[str, str]:
    return {"operation": entry.operation, "algorithm": entry.form, "title": entry.title, "order": entry.order}


@show.command(examples=("commodel show topologies", "commodel show topologies knomial"))
@click.argument("name", required=False)
@OUTPUT
def topologies(name: str | None, style: str) -> None:
    """List the forms of tree that --topology takes."""
    _print_forms("topology", "patterns.trees.topologies", name, style)


@show.command(examples=("commodel show layouts", "commodel show layouts block-cyclic"))
@click.argument("name", required=False)
@OUTPUT
def layouts(name: str | None, style: str) -> None:
    """List the layouts that --layout takes; Q is the number of ranks a node."""
    from commodel.patterns.layouts import NEAR_LAYOUT

    near = {"layout": NEAR_LAYOUT, "title": "`advise` and `predict`: ranks that exchange most bytes are near"}
    if name == NEAR_LAYOUT:
        print_rows([near], style)
    else:
        _print_forms("layout", "patterns.layouts", name, style, () if name else (near,))


def _print_forms(kind: str, folder: str, name: str | None, style: str, further: Sequence[dict[str, str]] = ()) -> None:
    from commodel.registry import discover, lookup

    entries = [lookup(folder, kind.upper(), name)] if name else discover(folder, kind.upper()).values()
    print_rows([*({kind: entry.form, "title": entry.title} for entry in entries), *further], style)


@show.command(examples=("commodel show models", "commodel show models loggp"))
@click.argument("name", required=False)
@OUTPUT
def models(name: str | None, style: str) -> None:
    """List the models, or show one: equation, parameters, probes, citation, published sets."""
    from commodel.models.families import find_family, list_family_names

    entries = [find_family(name) for name in ([name] if name else list_family_names())]
    if name and style == "table":
        click.echo(_format_model(entries[0]))
    elif style == "json":
        fields = [_collect_model_fields(entry) for entry in entries]
        click.echo(json.dumps(fields[0] if name else fields, indent=1, ensure_ascii=False))
    else:
        print_rows([_make_model_row(entry) for entry in entries], style)


def _make_model_row(entry: Family) -> dict[str, str]:
    symbols = " ".join(parameter.symbol for parameter in entry.parameters)
    return {"name": entry.name, "title": entry.title, "parameters": symbols, "probes": " ".join(entry.probes)}


def _collect_model_fields(entry: Family) -> dict[str, Any]:
    from commodel.models.parameter_sets import read_published_sets

    names = ("name", "title", "citation", "equation", "ignores", "uses_bytes")
    parameters = [
        {key: getattr(parameter, key) for key in ("name", "unit", "meaning", "argument", "per")}
        | {"required": parameter.default is None and not parameter.optional}
        for parameter in entry.parameters
    ]
    return {name: getattr(entry, name) for name in names} | {
        "parameters": parameters,
        "probes": list(entry.probes),
        "settings": {key: list(allowed) for key, allowed in (entry.settings or {}).items()},
        "decides": dict(entry.setting_meanings or {}),
        "published": list(read_published_sets(entry.name)),
    }


def _format_model(entry: Family) -> str:
    from commodel.models.parameter_sets import read_published_sets

    parameters = [
        {"parameter": parameter.symbol, "unit": parameter.unit, "meaning": parameter.about}
        for parameter in entry.parameters
    ]
    width = find_table_width()

    def wrap(title: str, text: str) -> list[str]:
        return textwrap.wrap(text, width, initial_indent=f"{title:11}", subsequent_indent=" " * 11)

    lines = [
        entry.title,
        "",
        *textwrap.wrap(entry.citation, width),
        "",
        *wrap("equation", entry.equation),
        *wrap("ignores", entry.ignores),
        f"probes     {', '.join(entry.probes)}",
        f"size       {'predictions grow with the message' if entry.uses_bytes else 'size not modelled'}",
    ]
    for name, allowed in (entry.settings or {}).items():
        lines += wrap("setting", f"{name}: {' or '.join(allowed)}. {(entry.setting_meanings or {}).get(name, '')}")
    lines += ["", format_table(parameters)] if parameters else ["", "no parameters"]
    for path, values in read_published_sets(entry.name).items():
        limits = values.bytes_range
        sizes = f", {format_bytes(int(limits[0]))} to {format_bytes(int(limits[1]))}" if limits else ""
        lines += ["", f"published  {path}", f"           {values.source}{sizes}"]
    return "\n".join(lines)


@show.command(
    examples=(
        "commodel show topology kary:2^3 --format text",
        (
            "commodel show topology kary:2^3 --operation reduce "
            "--params results/sample/validated/fast-ethernet-32/loggp.yaml"
        ),
    ),
    arguments={"SPEC": "A form of `commodel show topologies` with its values."},
)
@click.argument("spec")
@make_option_group(
    "Critical path",
    click.option("--params", type=PATH, help="Parameter set (YAML): show the critical path of its prediction."),
    click.option("--operation", default="bcast", show_default=True, help="Operation to predict."),
    click.option("--bytes", "size", default="1KiB", show_default=True, help="Message size."),
)
@make_option_group(
    "Output",
    format_option(
        "summary",
        "text",
        "mrnet",
        "csv",
        "dot",
        "svg",
        help_text="Print key numbers (summary), a drawing (text, dot, svg), MRNet's file format, or node,parent (csv).",
    ),
)
def topology(spec: str, style: str, params: Path | None, operation: str, size: str) -> None:
    """Show the tree SPEC, such as kary:2^4 or groups:6,6,5."""
    from commodel.patterns.trees.drawing import draw_tree
    from commodel.patterns.trees.files import STYLES
    from commodel.patterns.trees.topologies import make_tree

    if params is None:
        click.echo((STYLES | {"svg": draw_tree})[style](make_tree(spec)))
        return
    if style not in ("summary", "svg"):
        raise UserError(f"--format: found {style} with --params, wanted svg or summary")
    rows, tooltips, summary = _list_critical_messages(spec, operation, size, params)
    if style == "svg":
        click.echo(draw_tree(make_tree(spec), tooltips, summary))
    else:
        print_answer(f"{summary}.", format_table(rows, ("time",)))


def _list_critical_messages(
    spec: str, operation: str, size: str, params: Path
) -> tuple[list[dict], dict[int, str], str]:
    """Return the messages on the critical path of a tree's prediction: as rows, as the tooltip of the node
    below each message, and a sentence with the predicted time and the number of messages."""
    from commodel.models.parameter_sets import read_set
    from commodel.patterns.points import PlatformResources, make_point
    from commodel.predictions.predictions import attribute_time

    parameters = read_set(params)
    point = make_point(
        PlatformResources.unlimited(), {"operation": operation, "topology": spec, "bytes": parse_bytes(size)}
    )
    if (critical := attribute_time(point, parameters)) is None:
        reason = "its predictions do not replay single messages, so they have no critical path"
        raise UserError(f"found parameters of model {parameters.model}: {reason}", file=params)
    rows = []
    texts: dict[int, list[str]] = {}
    for src, dst, seconds in critical.messages:
        share = round(100 * seconds / critical.prediction)
        rows.append({"from": src, "to": dst, "time": seconds, "share [%]": share})
        texts.setdefault(max(src, dst), []).append(f"{src} to {dst}: {format_seconds(seconds)}, {share} %")
    tooltips = {rank: "; ".join(of_rank) for rank, of_rank in texts.items()}
    work = f", {format_seconds(critical.work)} of work" if critical.work else ""
    prediction = f"{format_seconds(critical.prediction)} by {parameters.model}"
    pattern = f"{operation} over {spec}, {format_bytes(point.bytes)}: {prediction}"
    return rows, tooltips, f"{pattern}, which waits for {len(rows)} of {len(critical.src)} messages{work}"


@show.command(
    examples=(
        "commodel show layout cyclic:2 --ranks 6",
        "commodel show layout block --ranks 16 --platform fast-ethernet-32",
    ),
    arguments={"SPEC": "A form of `commodel show layouts` with its values."},
)
@click.argument("spec")
@make_option_group(
    "Ranks and platform",
    click.option("--ranks", type=click.IntRange(1, 1 << 20), help="Number of ranks.  [default: those of a file]"),
    platform_option,
)
@make_option_group(
    "Output",
    format_option(
        "line",
        "file",
        "json",
        "csv",
        help_text="Print the ranks of each node, a file for file:PATH, or a row for each rank.",
    ),
)
def layout(spec: str, ranks: int | None, platform: str | None, style: str) -> None:
    """Show the node of every rank under the layout SPEC, such as cyclic:2."""
    from commodel.patterns.build import complete_layout_and_ranks
    from commodel.patterns.layouts import assigns_cores, list_cores, list_devices, place_ranks
    from commodel.patterns.points import PlatformResources
    from commodel.plan.planning import load_resources

    placed, ranks = complete_layout_and_ranks(
        load_resources(platform) if platform else PlatformResources.unlimited(), spec, ranks
    )
    nodes, cores = place_ranks(placed.layout, ranks), list_cores(placed.layout, ranks)
    kind = list_devices(placed.layout, ranks)
    if style == "line":
        click.echo(_format_nodes(nodes, kind, cores))
    elif style == "file":
        click.echo("\n".join(map(str, nodes.tolist())))
    else:
        columns: dict[str, Sequence[Any]] = {"rank": range(ranks), "node": nodes.tolist()}
        columns |= {} if kind is None else {"kind": kind.tolist()}
        columns |= {"cores": cores.tolist()} if assigns_cores(placed.layout) else {}
        print_rows([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], style)


def _format_nodes(nodes: np.ndarray, kind: np.ndarray | None, cores: np.ndarray) -> str:
    """Return the ranks of each node, such as 0 1:6 | 2 3:accelerator. A rank has a suffix if it has several cores,
    or another kind of processor."""
    ranks_of_node: dict[int, list[str]] = {}
    for rank, node in enumerate(nodes):
        on_core = kind is None or kind[rank] == "core"
        suffix = "" if on_core and cores[rank] == 1 else f":{cores[rank] if kind is None or on_core else kind[rank]}"
        ranks_of_node.setdefault(int(node), []).append(f"{rank}{suffix}")
    last = max(ranks_of_node)
    if last > len(nodes) + 1000:  # a layout file may have very high node numbers
        return " | ".join(f"node {node}: {' '.join(ranks_of_node[node])}" for node in sorted(ranks_of_node))
    return " | ".join(" ".join(ranks_of_node.get(node, ["-"])) for node in range(last + 1))


@show.command(
    examples=(
        "commodel show schedule --operation bcast --algorithm binomial --ranks 8 --bytes 1KiB",
        "commodel show schedule --operation reduce --topology flat:4 --bytes 1KiB --format dot",
    )
)
@pattern_options
@make_option_group(
    "Output", format_option("csv", "dot", help_text="Print the table that file:PATH reads, or a drawing.")
)
def schedule(style: str, **pattern) -> None:
    """Show the messages and the local work of one pattern."""
    from commodel.api.predictions import build_one_schedule
    from commodel.patterns.schedule_files import STYLES

    click.echo(STYLES[style](build_one_schedule(**pattern)))


@show.command(
    examples=("commodel show network mine", "commodel show network mycluster --levels"),
    arguments={"NAME": "Experiment with results, or platform (name or file). `probes: auto` times pairs of nodes."},
)
@click.argument("name")
@make_option_group("Platform", click.option("--platform", help="Platform to show.  [default: all of the experiment]"))
@make_option_group(
    "Output",
    click.option("--levels", is_flag=True, help="Print `levels` for the platform file, from Slurm or learned."),
    style_option,
)
def network(name: str, platform: str | None, levels: bool, style: str) -> None:
    """Show distance classes, groups of nodes and slow nodes, from times between pairs of nodes."""
    from commodel.compare.network import find_networks, format_levels, tabulate_distance_classes
    from commodel.reports.sections.network import describe_mixed_classes, describe_network, list_node_rows

    with show_waiting("grouping the nodes by latency"):
        networks = find_networks(name, platform and Path(platform).stem)
    if not levels and style != "table":
        print_rows([{"platform": entry.platform} | row for entry in networks for row in list_node_rows(entry)], style)
        return
    for entry in networks:
        click.echo(f"# {entry.platform}{' (simulated)' if entry.simulated else ''}")
        if levels:
            comments = [f"# {make_printable(line)}" for line in describe_mixed_classes(entry)]
            click.echo("\n".join([*comments, format_levels(entry.hierarchy)]))
        else:
            answer, *notes = (make_printable(line) for line in describe_network(entry))
            classes = tabulate_distance_classes(entry).to_dict("records")
            print_answer(answer, format_table(list(map(_make_distance_class_row, classes)), LATENCY_COLUMNS), notes)


LATENCY_COLUMNS = ("latency", "from", "to")


def _make_distance_class_row(row: dict) -> dict:
    return {name: row[name] for name in ("class", "pairs", "latency")} | {
        "from": row["latency_low"],
        "to": row["latency_high"],
        "bandwidth [MB/s]": row["bandwidth"] / 1e6,
        "from [MB/s]": row["bandwidth_low"] / 1e6,
        "to [MB/s]": row["bandwidth_high"] / 1e6,
    }
