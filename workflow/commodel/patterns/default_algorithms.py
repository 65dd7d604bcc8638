"""The algorithm that an MPI library runs by its default rules (`find_default_algorithm`).

The files in `default_rules/` have the rules, with the versions for which they hold and their
source. They are those of communicators of all ranks, of the root 0 and of operations that commute.
Other libraries and versions are unknown to these rules, and so are settings of a site and further
components, such as hcoll and ucc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from commodel.files.yaml import parse_yaml
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.arguments import UNSEGMENTED
from commodel.patterns.libraries import MPICH, OPEN_MPI
from commodel.patterns.operations import has_size
from commodel.records import Point
from commodel.units import format_bytes

RULES = Path(__file__).with_name("default_rules")
TUNED, HAN, MPICH_RULES = "open-mpi-tuned", "open-mpi-han", "mpich"
# At the begin of a version text, or of a setting such as `Open MPI 5.0.3, gpu=no`.
LIBRARY = re.compile(
    r"(?P<name>Open MPI|MPICH)(?: Version)?[ :\tv]+(?P<version>\d+\.\d+)(?P<patch>[.\d]*)"
)
# Parts of a version text: an Open MPI with collectives of its own, and another device of MPICH.
EXCLUDED = re.compile(r"hpcx|hpc-x|\bch3\b", re.IGNORECASE)
WHOLE_RESULT = ("allgather",)  # of MPICH: operations whose rules compare the whole result
# The datatype of a call is unknown: an algorithm is named if elements of these bytes select it.
ELEMENT_BYTES = (1, 4, 8)
SHARED_MEMORY = "shared memory of the node"
# Conditions of a rule on ranks and elements.
CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "powers_of_two": lambda ranks, elements: ranks & (ranks - 1) == 0,
    "even_ranks": lambda ranks, elements: ranks % 2 == 0,
    "enough_elements": lambda ranks, elements: elements >= 1 << (ranks.bit_length() - 1),
    "an_element_each": lambda ranks, elements: elements >= ranks,
}


@dataclass(frozen=True)
class DefaultAlgorithm:
    """What a library runs by default: its name in words, and the algorithm of the catalogue that
    sends the same messages, empty if there is none or if it depends on the datatype."""

    library: str
    name: str
    spec: str

    @property
    def algorithm(self) -> str:
        """The spec or the name in words, with the library's component if it is another one than
        usual."""
        name = self.spec or self.name
        component = f", by {self.name}" if self.spec and self.name.startswith("han") else ""
        return f"{name}{component}"

    @property
    def text(self) -> str:
        """A sentence without its full stop."""
        return f"{self.library} would run: {self.algorithm}"


@dataclass(frozen=True)
class Call:
    """A call over the ranks of a communicator, with elements of some bytes."""

    operation: str
    ranks: int
    bytes: int
    element: int

    @property
    def elements(self) -> int:
        return self.bytes // self.element

    def fulfils(self, condition: str) -> bool:
        return CONDITIONS[condition](self.ranks, self.elements)


@dataclass(frozen=True)
class _Part:
    """An algorithm of a library over one communicator: its name and its spec here."""

    name: str
    spec: str

    @property
    def text(self) -> str:
        return self.spec or f"{self.name} (not in the catalogue)"


def find_default_algorithm(library: str, point: Point) -> DefaultAlgorithm | None:
    """Return what a library runs for the operation of a point; None if that is unknown. `library`
    begins with its name and version, such as `Open MPI 5.0.3`."""
    rules = find_rules(library)
    is_plain = point.operation in read_rules(TUNED)["algorithms"] and point.waves == 1
    if not rules or not is_plain or point.leaves or point.ranks < 2:
        return None
    if has_size(point.operation) and not point.bytes:
        return None
    find = _find_of_mpich if MPICH_RULES in rules else _find_of_open_mpi
    sizes = [size for size in ELEMENT_BYTES if size <= max(point.bytes, 1)]
    parts = list(dict.fromkeys(find(rules, point, size) for size in sizes))
    name, spec = parts[0].name, parts[0].spec
    if len(parts) > 1:
        names = " or ".join(part.text for part in parts)
        name, spec = f"{names}, depending on the datatype", ""
    elif not spec:
        name = parts[0].text
    match = LIBRARY.match(library)
    assert match is not None  # it has rules
    named = f"{match['name']} {match['version']}{match['patch']}"
    return DefaultAlgorithm(named, name, spec)


def find_rules(library: str) -> tuple[str, ...]:
    """Return the names of the rules that hold for a library; none if it is unknown to all."""
    match = LIBRARY.match(library)
    if match is None or EXCLUDED.search(library):
        return ()
    names = (HAN, TUNED, MPICH_RULES)
    return tuple(
        name
        for name in names
        if read_rules(name)["library"] == match["name"]
        and match["version"] in read_rules(name)["versions"]
    )


@cache
def read_rules(name: str) -> Mapping[str, Any]:
    """Return the content of a file of rules."""
    path = RULES / f"{name}.yaml"
    content = parse_yaml(path.read_text(encoding="utf-8"), path).data
    assert isinstance(content, dict)
    return content


def _find_of_open_mpi(rules: Sequence[str], point: Point, element: int) -> _Part:
    has_leaders = point.nodes > 1 and point.per_node > 1
    if HAN not in rules or not has_leaders or point.operation not in read_rules(HAN)["operations"]:
        return _find_of_tuned(Call(point.operation, point.ranks, point.bytes, element))
    if point.ranks == point.nodes * point.per_node:
        return _find_of_han(point, element)
    if point.operation in read_rules(HAN)["unequal_nodes"]:
        return _Part("han over nodes with different numbers of ranks", "")
    return _find_of_tuned(Call(point.operation, point.ranks, point.bytes, element))


def _find_of_tuned(call: Call) -> _Part:
    """Return the algorithm of coll/tuned, after what its function runs instead."""
    rules = read_rules(TUNED)
    name = find_name_in_tuned(call)
    instead = rules["instead"].get(call.operation, {}).get(name)
    if instead and not call.fulfils(instead["needs"]):
        name = instead["runs"]
    same = rules["same_messages"].get(call.operation, {}).get(name, name)
    number = 1 + rules["numbers"][call.operation].index(same)
    spec = _find_in_catalogue(call.operation, OPEN_MPI, number)
    return _Part(name, _write_unsegmented(call, spec) if spec else "")


def find_name_in_tuned(call: Call) -> str:
    """Return the algorithm that the rules of coll/tuned name for a call."""
    rows = read_rules(TUNED)["algorithms"][call.operation]
    # the rows are in the order of ranks, and the choices of a row in that of bytes
    _, *choices = [row for row in rows if row[0] <= call.ranks][-1]
    thresholds = [choice.split(" ") for choice in choices]
    return [name for size, name in thresholds if int(size) <= call.bytes][-1]


def _write_unsegmented(call: Call, name: str) -> str:
    """Return the spec of an algorithm without segments: the default rules set none."""
    argument = find_algorithms(call.operation)[name].argument
    if argument is None or not argument.is_size or (argument.default or call.bytes) >= call.bytes:
        return name
    return f"{name}:{format_bytes(UNSEGMENTED).replace(' ', '')}"


def _find_of_han(point: Point, element: int) -> _Part:
    """Return the algorithms of coll/han between nodes and within each, as a hierarchical one."""
    rules = read_rules(HAN)
    parts = rules["operations"][point.operation]
    segment = rules["segment"] if point.operation in ("allreduce", "bcast", "reduce") else 0
    sizes = [min(point.bytes, segment) if segment else point.bytes]
    rest = point.bytes % segment if segment else 0
    is_cut = bool(segment) and point.bytes > segment
    if is_cut and rest:
        sizes.append(rest)
    # A short last segment may have other algorithms.
    specs = [
        _write_han(parts, replace(point, bytes=size), element, number == 0 and not is_cut)
        for number, size in enumerate(sizes)
    ]
    spec = specs[0] if len(set(specs)) == 1 else ""
    cut = f", in segments of {format_bytes(segment)}" if is_cut else ""
    name = f"han{cut}"
    if not spec:
        return _Part(f"han, a hierarchical algorithm{cut}", "")
    part_of_segment = f":segment={format_bytes(segment).replace(' ', '')}" if is_cut else ""
    return _Part(name, f"{spec}{part_of_segment}")


def _write_han(
    parts: Mapping[str, Sequence[str]], point: Point, element: int, is_whole: bool
) -> str:
    """Return the spec of han's algorithms for one segment; empty if one is not in the catalogue."""
    within = point.per_node
    of_node = point.bytes * within
    inter = []
    for operation in parts["inter"]:
        size = of_node if operation in ("allgather", "gather", "scatter") else point.bytes
        found = _find_between(Call(operation, point.nodes, size, element), is_whole)
        inter.append(found)
    intra = []
    for operation in parts["intra"]:
        is_result = point.operation == "allgather" and operation == "bcast"
        size = point.bytes * point.ranks if is_result else point.bytes
        intra.append(_find_of_tuned(Call(operation, within, size, element)).spec)
    if not all((*inter, *intra)):
        return ""
    return f"hier:inter={'+'.join(inter)}:intra={'+'.join(intra)}"


def _find_between(call: Call, is_whole: bool) -> str:
    """Return the spec of an operation between nodes. Of a broadcast in segments, the first segment
    has the algorithm of tuned and all others that of libnbc."""
    libnbc = {"ibcast": "bcast", "ireduce": "reduce"}
    if call.operation in libnbc:
        name = _match_rows(read_rules(HAN)["libnbc"][call.operation], call)["algorithm"]
        is_far = (call.operation, name) == ("ibcast", "binomial")
        return "binomial-near" if is_far else str(name)
    spec = _find_of_tuned(call).spec
    if is_whole or call.operation != "bcast":
        return spec
    following = _find_between(replace(call, operation="ibcast"), is_whole)
    return spec if spec == following else ""


def _find_of_mpich(rules: Sequence[str], point: Point, element: int) -> _Part:
    content = read_rules(MPICH_RULES)
    call = Call(point.operation, point.ranks, point.bytes, element)
    composition = content["compositions"].get(point.operation)
    is_composed = bool(composition and _match_rows(composition, call)["composed"])
    if not is_composed or point.per_node == 1:
        return _find_flat_of_mpich(call)
    if point.nodes == 1:
        return _Part(SHARED_MEMORY, "")
    leaders = _find_flat_of_mpich(replace(call, ranks=point.nodes))
    between = leaders.spec or leaders.name
    return _Part(f"{between} between the leaders of nodes, {SHARED_MEMORY} within", "")


def _find_flat_of_mpich(call: Call) -> _Part:
    size = call.bytes * call.ranks if call.operation in WHOLE_RESULT else call.bytes
    rows = read_rules(MPICH_RULES)["algorithms"][call.operation]
    name = _match_rows(rows, replace(call, bytes=size))["algorithm"]
    function = f"MPIR_{call.operation.replace('-', '_').capitalize()}_intra_{name}"
    return _Part(name, _find_in_catalogue(call.operation, MPICH, function))


def _find_in_catalogue(operation: str, library: str, name: int | str) -> str:
    """Return the algorithm that sends the messages of a library's function, given by its number or
    name; empty if there is none."""
    for algorithm in find_algorithms(operation).values():
        for routine in algorithm.mpi_functions:
            if routine.library == library and name in (routine.number, routine.function):
                return algorithm.short_name
    return ""


def _match_rows(rows: Sequence[Mapping[str, Any]], call: Call) -> Mapping[str, Any]:
    """Return the first row that holds for a call."""
    for row in rows:
        is_below = call.ranks < row.get("ranks", call.ranks + 1)
        is_below = is_below and call.bytes < row.get("bytes", call.bytes + 1)
        conditions = [name for name in CONDITIONS if name in row]
        if is_below and all(call.fulfils(name) for name in conditions):
            return row
    raise AssertionError("the last row of rules holds for all calls")
