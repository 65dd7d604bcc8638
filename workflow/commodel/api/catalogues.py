"""Catalogues and their entries from Python: `show` lists operations, algorithms, topologies,
layouts, models and extensions, and draws trees, placements of ranks, messages of a pattern, and the
network of an allocation."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from commodel.api.result import Result, write_or_return
from commodel.errors import UserError, check_option_names, make_printable, suggest_name
from commodel.files.text_tables import find_table_width, format_answer, format_rows, format_table
from commodel.units import format_bytes, format_count, format_seconds, parse_bytes

if TYPE_CHECKING:
    import numpy as np

    from commodel.api.predictions import Amounts
    from commodel.models.families import Family
    from commodel.patterns.algorithms import Algorithm, TreeAlgorithm
    from commodel.patterns.libraries import Routine


@dataclass(frozen=True, eq=False, repr=False)
class Shown(Result):
    """A catalogue, or one of its entries: a row for each part, and a text."""

    sentence: str
    _make_rows: Callable[[], Sequence[Mapping[str, Any]]]  # a pattern may have millions of messages
    content: str
    data: Any = None  # of JSON, if that is more than the rows
    notes: Sequence[str] = ()
    provenance: Sequence[Mapping[str, str]] = ()

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, Any]],
        sentence: str,
        content: str | None = None,
        data: Any = None,
    ) -> Self:
        return cls(
            sentence, lambda: rows, format_rows(rows, "table") if content is None else content, data
        )

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The entries of a catalogue, or the parts of an entry, such as the nodes of a tree."""
        return self._make_rows()

    def text(self, verbose: bool = True) -> str:
        """Return the table or the drawing."""
        return self.content

    def to_json(self, file: str | Path | None = None) -> str | None:
        """Write the rows, or all that is known of one model, as JSON, or return them as text."""
        if self.data is None:
            return super().to_json(file)
        return write_or_return(json.dumps(self.data, indent=1, ensure_ascii=False), file)


def show(catalogue: str, name: str | None = None, **options: Any) -> Shown:
    """Return a catalogue, or one entry of it. Printed, the result is what `commodel show` prints.

    | catalogue | name | options |
    |---|---|---|
    | `operations`, `topologies`, `layouts`, `models`, `extensions` | an entry; all by default | |
    | `algorithms` | an operation; all by default | `libraries` |
    | `topology` | a tree, such as `kary:2^3` | `style`; `params`, `operation`, `size` for a critical path |
    | `layout` | a layout, such as `cyclic:2` | `ranks`, `platform`, `style` |
    | `schedule` | an operation | `algorithm` or `topology`, `ranks`, `bytes`, `layout`, `style` |
    | `network` | an experiment or a platform | `platform`, `levels` |

    >>> show("algorithms", "bcast").frame  # doctest: +SKIP
    """
    if catalogue not in CATALOGUES:
        raise UserError(
            f"found no catalogue '{catalogue}'; {suggest_name(catalogue, list(CATALOGUES))}"
        )
    function = CATALOGUES[catalogue]
    check_option_names(
        options, list(inspect.signature(function).parameters)[1:], f"show {catalogue}"
    )
    return function(name, **options)


def show_operations(name: str | None = None) -> Shown:
    """List the operations, the meaning of `bytes` in each, and their parameters."""
    from commodel.patterns.operations import find_operation, list_operations

    entries = [find_operation(name)] if name else list(list_operations().values())
    rows = [
        {"operation": entry.name, "bytes": entry.bytes or "none", "mpi": entry.mpi or "none"}
        for entry in entries
    ]
    parameters = [
        {"of": entry.name, "parameter": f"{field.name}={field.form}", "meaning": field.title}
        for entry in entries
        for field in entry.parameters
    ]
    content = "\n\n".join(format_table(part) for part in (rows, parameters) if part)
    texts = [
        "; ".join(f"{field.name}={field.form}: {field.title}" for field in entry.parameters)
        for entry in entries
    ]
    full_rows = [row | {"parameters": text} for row, text in zip(rows, texts, strict=True)]
    return Shown.of(full_rows, f"{len(rows)} operations.", content)


def show_algorithms(operation: str | None = None, libraries: bool = False) -> Shown:
    """List the algorithms of all operations, or of one; with `libraries`, the functions of MPI
    libraries."""
    from commodel.patterns.operations import find_operation
    from commodel.registry import discover

    operation_name = find_operation(operation).name if operation else None
    rows = []
    for entry in sorted(
        discover("patterns.algorithms", "ALGORITHM").values(), key=lambda entry: entry.name
    ):
        if operation_name in (None, entry.operation):
            rows += _list_library_functions(entry) if libraries else [_make_algorithm_row(entry)]
    return Shown.of(rows, f"{len(rows)} algorithms.")


def _list_library_functions(algorithm: Algorithm | TreeAlgorithm) -> list[dict[str, str]]:
    """Return a row for each function of an MPI library that implements the algorithm; without any,
    one row with `none`."""
    names = {"operation": algorithm.operation, "algorithm": algorithm.form}
    rows = []
    for routine in getattr(algorithm, "mpi_functions", ()):
        row = names | {"library": routine.library, "function": routine.function}
        rows.append(
            row
            | {"operands": _describe_operand_order(algorithm, routine), "differs": routine.differs}
        )
    return rows or [names | {"library": "none", "function": "", "operands": "", "differs": ""}]


def _describe_operand_order(algorithm: Algorithm | TreeAlgorithm, routine: Routine) -> str:
    """Return whether a library's function keeps the order of operands; empty if the operation is no
    reduction."""
    from commodel.patterns.operations import find_operation

    if not find_operation(algorithm.operation).reduces:
        return ""
    return "in order" if routine.keeps_order else "reordered"


def _make_algorithm_row(algorithm: Algorithm | TreeAlgorithm) -> dict[str, str]:
    return {
        "operation": algorithm.operation,
        "algorithm": algorithm.form,
        "title": algorithm.title,
        "order": algorithm.order,
    }


def show_topologies(name: str | None = None) -> Shown:
    """List the forms of tree that patterns take."""
    return _list_forms("topology", "patterns.trees.topologies", name)


def show_layouts(name: str | None = None) -> Shown:
    """List the layouts of ranks; Q is the number of ranks a node."""
    from commodel.patterns.layouts import NEAR_LAYOUT

    near = {
        "layout": NEAR_LAYOUT,
        "title": "`advise` and `predict`: ranks that exchange most bytes are near",
    }
    if name == NEAR_LAYOUT:
        return Shown.of([near], f"{name}.")
    return _list_forms("layout", "patterns.layouts", name, () if name else (near,))


def _list_forms(
    kind: str, folder: str, name: str | None, further: Sequence[dict[str, str]] = ()
) -> Shown:
    from commodel.registry import discover, lookup

    entries = (
        [lookup(folder, kind.upper(), name)] if name else discover(folder, kind.upper()).values()
    )
    rows = [*({kind: entry.form, "title": entry.title} for entry in entries), *further]
    return Shown.of(rows, f"{len(rows)} forms of {kind}.")


def show_models(name: str | None = None) -> Shown:
    """List the models, or show one: equation, parameters, probes, citation, published sets."""
    from commodel.models.families import find_family, list_family_names

    entries = [find_family(name) for name in ([name] if name else list_family_names())]
    rows = [_make_model_row(entry) for entry in entries]
    fields = [_collect_model_fields(entry) for entry in entries]
    if name:
        return Shown.of(rows, entries[0].title + ".", _format_model(entries[0]), fields[0])
    return Shown.of(rows, f"{len(rows)} models.", data=fields)


def show_extensions(name: str | None = None) -> Shown:
    """List the installed extensions: the package of each, its version, and everything that it
    brings."""
    from commodel.extensions import list_extensions

    rows = []
    for installed in list_extensions():
        if name in (None, installed.name):
            brings = "; ".join(
                f"{kind} {', '.join(names)}" for kind, names in installed.list_brought().items()
            )
            rows.append(
                {
                    "extension": installed.name,
                    "title": installed.extension.title,
                    "package": f"{installed.distribution} {installed.version}",
                    "brings": installed.problem or brings,
                }
            )
    if name and not rows:
        names = [installed.name for installed in list_extensions()]
        raise UserError(f"found no extension '{name}'; {suggest_name(name, names)}")
    if not rows:
        return Shown.of(rows, "No extension is installed.", "No extension is installed.")
    return Shown.of(rows, f"{format_count(len(rows), 'extension')}.")


def _make_model_row(family: Family) -> dict[str, str]:
    symbols = " ".join(parameter.symbol for parameter in family.parameters)
    return {
        "name": family.name,
        "title": family.title,
        "parameters": symbols,
        "probes": " ".join(family.probes),
    }


def _collect_model_fields(family: Family) -> dict[str, Any]:
    from commodel.models.parameter_sets import read_published_sets

    names = ("name", "title", "citation", "equation", "ignores", "uses_bytes")
    parameters = [
        {key: getattr(parameter, key) for key in ("name", "unit", "meaning", "argument", "per")}
        | {"required": parameter.default is None and not parameter.optional}
        for parameter in family.parameters
    ]
    return {name: getattr(family, name) for name in names} | {
        "parameters": parameters,
        "probes": list(family.probes),
        "settings": {key: list(setting.values) for key, setting in family.settings.items()},
        "decides": {key: setting.meaning for key, setting in family.settings.items()},
        "published": list(read_published_sets(family.name)),
    }


def _format_model(family: Family) -> str:
    from commodel.models.parameter_sets import read_published_sets

    parameters = [
        {"parameter": parameter.symbol, "unit": parameter.unit, "meaning": parameter.about}
        for parameter in family.parameters
    ]
    width = find_table_width()

    def wrap(title: str, text: str) -> list[str]:
        return textwrap.wrap(text, width, initial_indent=f"{title:11}", subsequent_indent=" " * 11)

    lines = [
        family.title,
        "",
        *textwrap.wrap(family.citation, width),
        "",
        *wrap("equation", family.equation),
        *wrap("ignores", family.ignores),
        f"probes     {', '.join(family.probes)}",
        f"size       {'predictions grow with the message' if family.uses_bytes else 'size not modelled'}",
    ]
    for name, setting in family.settings.items():
        lines += wrap("setting", f"{name}: {' or '.join(setting.values)}. {setting.meaning}")
    lines += ["", format_table(parameters)] if parameters else ["", "no parameters"]
    for path, values in read_published_sets(family.name).items():
        limits = values.bytes_range
        sizes = (
            f", {format_bytes(int(limits[0]))} to {format_bytes(int(limits[1]))}" if limits else ""
        )
        lines += ["", f"published  {path}", f"           {values.source}{sizes}"]
    return "\n".join(lines)


def show_topology(
    spec: str,
    style: str = "summary",
    params: str | Path | None = None,
    operation: str = "bcast",
    size: str = "1KiB",
) -> Shown:
    """Show a tree as key numbers, as a drawing, in MRNet's format or as CSV; with a parameter set,
    the critical path of its prediction."""
    from commodel.patterns.trees.drawing import draw_tree
    from commodel.patterns.trees.files import STYLES
    from commodel.patterns.trees.topologies import make_tree

    if params is None:
        tree = make_tree(spec)

        def list_nodes() -> list[dict[str, Any]]:
            return [
                {"node": node, "parent": parent} for node, parent in enumerate(tree.parent.tolist())
            ]

        return Shown(
            f"{spec}: {len(tree.parent)} nodes.",
            list_nodes,
            (STYLES | {"svg": draw_tree})[style](tree),
        )
    if style not in ("summary", "svg"):
        raise UserError(f"--format: found {style} with --params, wanted svg or summary")
    messages, tooltips, summary = _list_critical_messages(spec, operation, size, Path(params))
    if style == "svg":
        return Shown.of(messages, f"{summary}.", draw_tree(make_tree(spec), tooltips, summary))
    return Shown.of(
        messages, f"{summary}.", format_answer(f"{summary}.", format_table(messages, ("time",)))
    )


def _list_critical_messages(
    spec: str, operation: str, size: str, params: Path
) -> tuple[list[dict[str, Any]], dict[int, str], str]:
    """Return the messages on the critical path of a tree's prediction: as rows, as the tooltip of
    the node below each message, and a sentence with the predicted time and the number of
    messages."""
    from commodel.models.parameter_sets import read_set
    from commodel.patterns.points import PlatformResources, make_point
    from commodel.predictions.predictions import attribute_time

    parameters = read_set(params)
    point = make_point(
        PlatformResources.unlimited(),
        {"operation": operation, "topology": spec, "bytes": parse_bytes(size)},
    )
    critical = attribute_time(point, parameters)
    if critical is None:
        reason = "its predictions do not replay single messages, so they have no critical path"
        raise UserError(f"found parameters of model {parameters.model}: {reason}", file=params)
    rows = []
    texts: dict[int, list[str]] = {}
    for src, dst, seconds in critical.messages:
        share = round(100 * seconds / critical.prediction)
        rows.append({"from": src, "to": dst, "time": seconds, "share [%]": share})
        texts.setdefault(max(src, dst), []).append(
            f"{src} to {dst}: {format_seconds(seconds)}, {share} %"
        )
    tooltips = {rank: "; ".join(of_rank) for rank, of_rank in texts.items()}
    work = f", {format_seconds(critical.work)} of work" if critical.work else ""
    prediction = f"{format_seconds(critical.prediction)} by {parameters.model}"
    pattern = f"{operation} over {spec}, {format_bytes(point.bytes)}: {prediction}"
    return (
        rows,
        tooltips,
        f"{pattern}, which waits for {len(rows)} of {len(critical.src)} messages{work}",
    )


def show_layout(
    spec: str, ranks: int | None = None, platform: str | None = None, style: str = "line"
) -> Shown:
    """Show the node of every rank under a layout: as a line, or as a file for `file:PATH`."""
    from commodel.patterns.build import complete_layout_and_ranks
    from commodel.patterns.layouts import assigns_cores, list_cores, list_devices, place_ranks
    from commodel.patterns.points import PlatformResources
    from commodel.plan.planning import load_resources

    resources = load_resources(platform) if platform else PlatformResources.unlimited()
    placed, ranks = complete_layout_and_ranks(resources, spec, ranks)
    nodes, cores = place_ranks(placed.layout, ranks), list_cores(placed.layout, ranks)
    kind = list_devices(placed.layout, ranks)
    columns: dict[str, Sequence[Any]] = {"rank": range(ranks), "node": nodes.tolist()}
    columns |= {} if kind is None else {"kind": kind.tolist()}
    columns |= {"cores": cores.tolist()} if assigns_cores(placed.layout) else {}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = (
        "\n".join(map(str, nodes.tolist()))
        if style == "file"
        else _format_nodes(nodes, kind, cores)
    )
    return Shown.of(rows, f"{spec}: {ranks} ranks.", lines)


def _format_nodes(nodes: np.ndarray, kind: np.ndarray | None, cores: np.ndarray) -> str:
    """Return the ranks of each node, such as 0 1:6 | 2 3:accelerator. A rank has a suffix if it has
    several cores, or another kind of processor."""
    ranks_of_node: dict[int, list[str]] = {}
    for rank, node in enumerate(nodes):
        on_core = kind is None or kind[rank] == "core"
        suffix = (
            ""
            if on_core and cores[rank] == 1
            else f":{cores[rank] if kind is None or on_core else kind[rank]}"
        )
        ranks_of_node.setdefault(int(node), []).append(f"{rank}{suffix}")
    last = max(ranks_of_node)
    if last > len(nodes) + 1000:  # a layout file may have very high node numbers
        return " | ".join(
            f"node {node}: {' '.join(ranks_of_node[node])}" for node in sorted(ranks_of_node)
        )
    return " | ".join(" ".join(ranks_of_node.get(node, ["-"])) for node in range(last + 1))


def show_schedule(
    operation: str,
    algorithm: str | Sequence[str] = (),
    topology: str | Sequence[str] = (),
    ranks: Amounts | None = None,
    bytes: Amounts | None = None,
    layout: str | None = None,
    platform: str | None = None,
    style: str = "csv",
) -> Shown:
    """Show the messages and the local work of one pattern, as the table that `file:PATH` reads, or
    as a drawing. A platform has the levels and node types of algorithms and layouts."""
    from commodel.api.predictions import build_one_schedule, join_amounts, list_names
    from commodel.patterns.schedule_files import STYLES
    from commodel.plan.planning import load_resources

    names = {
        "operation": operation,
        "algorithm": list_names(algorithm),
        "topology": list_names(topology),
    }
    amounts = {"ranks": join_amounts(ranks), "sizes": join_amounts(bytes)}
    resources = load_resources(platform) if platform else None
    schedule = build_one_schedule(**names, **amounts, layout=layout, resources=resources)

    def list_messages() -> list[dict[str, Any]]:
        columns = (schedule.src.tolist(), schedule.dst.tolist(), schedule.bytes.tolist())
        return [
            {"src": src, "dst": dst, "bytes": size} for src, dst, size in zip(*columns, strict=True)
        ]

    return Shown(
        f"{operation}: {len(schedule.src)} messages.", list_messages, STYLES[style](schedule)
    )


def show_network(name: str, platform: str | None = None, levels: bool = False) -> Shown:
    """Show distance classes, groups of nodes and slow nodes, from times between pairs of nodes;
    with `levels`, the part of a platform file."""
    from commodel.compare.network import find_networks, format_levels, tabulate_distance_classes
    from commodel.reports.sections.network import (
        describe_mixed_classes,
        describe_network,
        list_node_rows,
    )

    networks = find_networks(name, platform and Path(platform).stem)
    parts = []
    for network in networks:
        parts.append(f"# {network.platform}{' (simulated)' if network.simulated else ''}")
        if levels:
            comments = [f"# {make_printable(line)}" for line in describe_mixed_classes(network)]
            parts.append("\n".join([*comments, format_levels(network.hierarchy)]))
        else:
            answer, *notes = (make_printable(line) for line in describe_network(network))
            classes = tabulate_distance_classes(network).to_dict("records")
            table = format_table(list(map(_make_distance_class_row, classes)), LATENCY_COLUMNS)
            parts.append(format_answer(answer, table, notes))
    rows = [
        {"platform": network.platform} | row
        for network in networks
        for row in list_node_rows(network)
    ]
    return Shown.of(rows, f"{name}: the network of {len(networks)} platforms.", "\n".join(parts))


LATENCY_COLUMNS = ("latency", "from", "to")


def _make_distance_class_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("class", "pairs", "latency")} | {
        "from": row["latency_low"],
        "to": row["latency_high"],
        "bandwidth [MB/s]": row["bandwidth"] / 1e6,
        "from [MB/s]": row["bandwidth_low"] / 1e6,
        "to [MB/s]": row["bandwidth_high"] / 1e6,
    }


CATALOGUES: Mapping[str, Callable[..., Shown]] = MappingProxyType(
    {
        "operations": show_operations,
        "algorithms": show_algorithms,
        "topologies": show_topologies,
        "layouts": show_layouts,
        "models": show_models,
        "extensions": show_extensions,
        "topology": show_topology,
        "layout": show_layout,
        "schedule": show_schedule,
        "network": show_network,
    }
)
