"""Algorithms that follow the placement of ranks: through leaders of nodes and of further levels
(`hier`), in lanes of ranks with equal positions on their nodes (`lanes`), over ranks in the order
of their nodes (`by-node`), and an allgather in which every rank of a node sends to another node
(`locality-bruck`).
"""

from functools import partial
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.patterns.algorithms import (
    ALIASES,
    ANY_ORDER,
    Algorithm,
    Placement,
    canonicalize_algorithm,
    find_algorithm,
    find_algorithms,
)
from commodel.patterns.arguments import Argument, Kind
from commodel.patterns.compositions import Composer, Segments
from commodel.patterns.hierarchical_specs import (
    LEADERS,
    SEGMENT,
    Composition,
    Levels,
    SpecForm,
    Way,
    complete_levels,
    parse_composition,
    write_composition,
)
from commodel.patterns.hierarchical_stages import (
    group_lanes,
    has_lanes,
    is_hierarchical,
    is_out_of_order,
    list_by_node_stages,
    list_hier_segments,
    list_lane_stages,
    list_locality_bruck_stages,
)
from commodel.patterns.operations import find_operation
from commodel.patterns.schedule import Schedule
from commodel.records import COMPLETE_AT_ROOT


def _build_call(
    operation: str, algorithm: str, ranks: int, bytes: int, node: np.ndarray
) -> Schedule:
    """Return the Schedule of an algorithm over some ranks, on these nodes."""
    entry, text = find_algorithm(operation, algorithm)
    values = entry.parse_argument(text)
    placement = {"node": node} if entry.placement else {}
    return entry.build(ranks, bytes, *values, **placement)


def _find_root(operation: str) -> int | None:
    return 0 if operation in COMPLETE_AT_ROOT else None


def _build_hier(
    form: SpecForm, ranks: int, bytes: int, composition: Composition | None, *, node: np.ndarray
) -> Schedule:
    """Return an operation through the leaders of nodes, and of the groups of further levels."""
    segments = list_hier_segments(form.operation, composition or form.defaults, node, bytes)
    return Composer(node, _build_call).compose(segments, _find_root(form.operation))


def _build_lanes(
    form: SpecForm, ranks: int, bytes: int, composition: Composition | None, *, node: np.ndarray
) -> Schedule:
    """Return an operation in lanes of ranks with equal positions on their nodes."""
    stages = list_lane_stages(form.operation, composition or form.defaults, node, bytes)
    return Composer(node, _build_call).compose([Segments(stages)], _find_root(form.operation))


def _build_by_node(
    operation: str, ranks: int, bytes: int, algorithm: str, *, node: np.ndarray
) -> Schedule:
    """Return an algorithm over the ranks in the order of their nodes."""
    stages = list_by_node_stages(operation, algorithm, node, bytes)
    return Composer(node, _build_call).compose([Segments(stages)], _find_root(operation))


def _build_locality_bruck(
    ranks: int, bytes: int, algorithm: str | None, *, node: np.ndarray
) -> Schedule:
    """Return the locality-aware Bruck allgather."""
    stages = list_locality_bruck_stages(algorithm or "bruck", node, bytes)
    return Composer(node, _build_call).compose([Segments(stages)], None)


def _make_form(
    operation: str, inter: str, intra: str, parts: str = "", further: str = ""
) -> SpecForm:
    """Return the form of a spec. `inter` and `intra` are the default algorithms, `parts` the
    operations within a group: one, or two as UP+DOWN. `further` are other keys that it may have."""
    up, _, down = intra.partition("+")
    return SpecForm(
        operation=operation,
        inter=(operation,),
        intra=tuple(parts.split("+")) if parts else (operation,),
        defaults=Composition(Way(inter, inter), Way(up, down or up)),
        has_levels="LEVEL" in further,
        has_leaders=LEADERS in further,
        has_segments=SEGMENT in further,
    )


def _canonicalize(form: SpecForm, text: str, levels: Levels) -> str:
    """Return the canonical spelling of an argument, with the groups of the platform's levels."""
    composition = parse_composition(form, canonicalize_algorithm, text)
    return write_composition(form, complete_levels(composition, levels))


def _accept(value: object, node: np.ndarray) -> None:
    """Accept any nodes."""


def _check_lanes(composition: Composition | None, node: np.ndarray) -> None:
    """Refuse nodes with different numbers of ranks."""
    group_lanes(node, composition.leaders if composition else 1)


def _place_hier(title: str, form: SpecForm) -> dict[str, Any]:
    """Return the fields of an algorithm through leaders."""
    placement = Placement(is_hierarchical, _accept, partial(_canonicalize, form))
    return _describe(title, form) | {"build": partial(_build_hier, form), "placement": placement}


def _place_lanes(title: str, form: SpecForm) -> dict[str, Any]:
    """Return the fields of an algorithm in lanes."""
    placement = Placement(has_lanes, _check_lanes, partial(_canonicalize, form))
    return _describe(title, form) | {"build": partial(_build_lanes, form), "placement": placement}


def _describe(title: str, form: SpecForm) -> dict[str, Any]:
    """Return the fields of an algorithm whose argument has this form."""
    parse = partial(parse_composition, form, canonicalize_algorithm)
    return {
        "title": f"{title}; parts: {form.parts}",
        "argument": Argument("PART=…:…", Kind.SHAPE, parse, optional=True),
        "order": _find_order(form.operation),
    }


def _place_by_node(operation: str) -> dict[str, Any]:
    """Return the fields of an algorithm over ranks in the order of their nodes."""
    parse = partial(canonicalize_algorithm, operation)
    return {
        "title": "an algorithm over the ranks in the order of their nodes",
        "build": partial(_build_by_node, operation),
        "argument": Argument("ALGORITHM", Kind.SHAPE, parse),
        "order": _find_order(operation),
        "placement": Placement(is_out_of_order, _accept, parse),
    }


def _place_locality_bruck() -> dict[str, Any]:
    """Return the fields of the locality-aware Bruck allgather."""

    def canonicalize(text: str, levels: Levels) -> str:
        name = _parse_within_nodes(text)
        return "" if name == "bruck" else name

    return {
        "title": "allgather within nodes, then rounds of a message of each rank to another node and "
        "an allgather within nodes by ALGORITHM, bruck unless given",
        "build": _build_locality_bruck,
        "argument": Argument("ALGORITHM", Kind.SHAPE, _parse_within_nodes, optional=True),
        "placement": Placement(has_lanes, _check_lanes_of_node, canonicalize),
    }


def _parse_within_nodes(spec: str) -> str:
    """Return the canonical spec of an allgather within nodes. Refuse others, and those that follow
    the placement of ranks: all ranks of a node have the same."""
    flat = [
        name for name, algorithm in find_algorithms("allgather").items() if not algorithm.placement
    ]
    name = spec.partition(":")[0].strip().replace("_", "-")
    if ALIASES.get(("allgather", name), name) not in flat:
        raise UserError(
            f"locality-bruck: found '{spec}', wanted an algorithm within nodes: "
            f"{', '.join(sorted(flat))}"
        )
    return canonicalize_algorithm("allgather", spec)


def _check_lanes_of_node(value: object, node: np.ndarray) -> None:
    """Refuse nodes with different numbers of ranks."""
    group_lanes(node, 1)


def _find_order(operation: str) -> str:
    """Return the order of operands: placements may be in any order."""
    return ANY_ORDER if find_operation(operation).reduces else ""


ALGORITHM = (
    Algorithm(
        operation="allgather",
        short_name="hier",
        **_place_hier(
            "gather at the leader of each node, allgather among leaders, broadcast within nodes",
            _make_form(
                operation="allgather",
                inter="ring",
                intra="binomial",
                parts="gather+bcast",
                further="LEVEL leaders",
            ),
        ),
    ),
    Algorithm(
        operation="allgather",
        short_name="lanes",
        **_place_lanes(
            "allgather in each lane, then within nodes",
            _make_form(
                operation="allgather",
                inter="ring",
                intra="ring",
            ),
        ),
    ),
    Algorithm(
        operation="allgather",
        short_name="by-node",
        **_place_by_node("allgather"),
    ),
    Algorithm(
        operation="allgather",
        short_name="locality-bruck",
        **_place_locality_bruck(),
    ),
    Algorithm(
        operation="allreduce",
        short_name="hier",
        **_place_hier(
            "reduce to the leader of each node, allreduce among leaders, broadcast within nodes",
            _make_form(
                operation="allreduce",
                inter="recursive-doubling",
                intra="binomial",
                parts="reduce+bcast",
                further="LEVEL leaders segment",
            ),
        ),
    ),
    Algorithm(
        operation="allreduce",
        short_name="lanes",
        **_place_lanes(
            "reduce-scatter within nodes, allreduce in each lane, allgather within nodes",
            _make_form(
                operation="allreduce",
                inter="recursive-doubling",
                intra="recursive-halving+recursive-doubling",
                parts="reduce-scatter+allgather",
            ),
        ),
    ),
    Algorithm(
        operation="allreduce",
        short_name="by-node",
        **_place_by_node("allreduce"),
    ),
    Algorithm(
        operation="alltoall",
        short_name="hier",
        **_place_hier(
            "gather at the leader of each node, alltoall among leaders, scatter within nodes",
            _make_form(
                operation="alltoall",
                inter="pairwise",
                intra="linear",
                parts="gather+scatter",
                further="LEVEL leaders",
            ),
        ),
    ),
    Algorithm(
        operation="alltoall",
        short_name="lanes",
        **_place_lanes(
            "exchange in each lane, then within nodes",
            _make_form(
                operation="alltoall",
                inter="pairwise",
                intra="pairwise",
                further="leaders",
            ),
        ),
    ),
    Algorithm(
        operation="alltoall",
        short_name="by-node",
        **_place_by_node("alltoall"),
    ),
    Algorithm(
        operation="barrier",
        short_name="hier",
        **_place_hier(
            "signals to the leader of each node, barrier among leaders, signals within nodes",
            _make_form(
                operation="barrier",
                inter="dissemination",
                intra="linear",
                parts="gather+bcast",
                further="LEVEL",
            ),
        ),
    ),
    Algorithm(
        operation="bcast",
        short_name="hier",
        **_place_hier(
            "broadcast to the leader of each node, then within nodes",
            _make_form(
                operation="bcast",
                inter="binomial",
                intra="binomial",
                further="LEVEL leaders segment",
            ),
        ),
    ),
    Algorithm(
        operation="bcast",
        short_name="lanes",
        **_place_lanes(
            "scatter on the root's node, broadcast in each lane, allgather within nodes",
            _make_form(
                operation="bcast",
                inter="binomial",
                intra="binomial+ring",
                parts="scatter+allgather",
            ),
        ),
    ),
    Algorithm(
        operation="bcast",
        short_name="by-node",
        **_place_by_node("bcast"),
    ),
    Algorithm(
        operation="gather",
        short_name="hier",
        **_place_hier(
            "gather at the leader of each node, then at the root",
            _make_form(
                operation="gather",
                inter="binomial",
                intra="binomial",
                further="LEVEL",
            ),
        ),
    ),
    Algorithm(
        operation="gather",
        short_name="by-node",
        **_place_by_node("gather"),
    ),
    Algorithm(
        operation="reduce",
        short_name="hier",
        **_place_hier(
            "reduce to the leader of each node, then to the root",
            _make_form(
                operation="reduce",
                inter="binomial",
                intra="binomial",
                further="LEVEL leaders segment",
            ),
        ),
    ),
    Algorithm(
        operation="reduce",
        short_name="lanes",
        **_place_lanes(
            "reduce-scatter within nodes, reduce in each lane, gather on the root's node",
            _make_form(
                operation="reduce",
                inter="binomial",
                intra="recursive-halving+binomial",
                parts="reduce-scatter+gather",
            ),
        ),
    ),
    Algorithm(
        operation="reduce",
        short_name="by-node",
        **_place_by_node("reduce"),
    ),
    Algorithm(
        operation="reduce-scatter",
        short_name="hier",
        **_place_hier(
            "reduce to the leader of each node, reduce-scatter among leaders, scatter within nodes",
            _make_form(
                operation="reduce-scatter",
                inter="ring",
                intra="binomial",
                parts="reduce+scatter",
                further="LEVEL",
            ),
        ),
    ),
    Algorithm(
        operation="reduce-scatter",
        short_name="lanes",
        **_place_lanes(
            "reduce-scatter within nodes, then in each lane",
            _make_form(
                operation="reduce-scatter",
                inter="ring",
                intra="recursive-halving",
            ),
        ),
    ),
    Algorithm(
        operation="reduce-scatter",
        short_name="by-node",
        **_place_by_node("reduce-scatter"),
    ),
    Algorithm(
        operation="scatter",
        short_name="hier",
        **_place_hier(
            "scatter to the leader of each node, then within nodes",
            _make_form(
                operation="scatter",
                inter="binomial",
                intra="binomial",
                further="LEVEL",
            ),
        ),
    ),
    Algorithm(
        operation="scatter",
        short_name="by-node",
        **_place_by_node("scatter"),
    ),
)
