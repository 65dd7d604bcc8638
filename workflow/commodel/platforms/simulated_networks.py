"""Simulated networks (`read_network`): SimGrid XML with hosts and links, and settings that are
passed to SimGrid.

SimGrid would accept part of a wrong value (`1KiB:…` as 1 byte), or end without naming the setting,
so values are checked here. It would also load libraries, read and write any file, and create any
number of hosts for the author of a file; XML with such content is refused.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from commodel.errors import UserError, find_similar_name, make_printable, suggest_name
from commodel.files.atomic import write_text
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, read_bytes
from commodel.units import MAX_COUNT, show_value

NUMBER = r"([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?"
TIME = rf"{NUMBER}(ps|ns|us|ms|s|m|h)?"


class ValueSyntax(NamedTuple):
    """The syntax of values, as a pattern and as a description for errors."""

    pattern: str
    description: str


# Sizes, for which SimGrid reads an int: up to 2,146,999,999. Every size matches in one way only,
# since a pattern with two ways would take a time that doubles with each piece of a wrong value.
SIZE = r"([0-9]{1,9}|1[0-9]{9}|20[0-9]{8}|21[0-3][0-9]{7}|214[0-6][0-9]{6})"


def _make_piecewise_pattern(values: str) -> str:
    """Return a pattern for lists of sizes, each with the values from this size on."""
    return rf"{SIZE}:{values}(;{SIZE}:{values})*;?"


PIECEWISE_SECONDS = ValueSyntax(
    _make_piecewise_pattern(f"{TIME}:{TIME}"),
    "SIZE:SECONDS:SECONDS_A_BYTE, more sizes after ';', such as 0:6e-6:0;1500:4e-5:2e-9",
)
PIECEWISE_FACTORS = ValueSyntax(
    _make_piecewise_pattern(f"({NUMBER})"),
    "SIZE:FACTOR, more sizes after ';', such as 0:1;65536:1.2",
)
FACTOR = ValueSyntax(
    rf"{NUMBER}|{PIECEWISE_FACTORS.pattern}", f"a number, or {PIECEWISE_FACTORS.description}"
)
AMOUNT = ValueSyntax(NUMBER, "a number without a unit: seconds, bytes, or bytes a second")
ANY_NUMBER = ValueSyntax(rf"-?{NUMBER}", "a number")
BYTES = ValueSyntax(r"[0-9]{1,18}", "a whole number of bytes without a unit, such as 65536")
LIMIT = ValueSyntax(r"-1|[0-9]{1,9}", "a whole number, or -1 for no limit")
WHOLE = ValueSyntax(r"[0-9]{1,9}", "a whole number without a unit")
FLAG = ValueSyntax(r"yes|no|on|off|true|false|[01]", "yes or no")
SPEED = ValueSyntax(
    rf"{NUMBER}([kMGTPEZY]?f|(kilo|mega|giga|tera|peta|exa)?flops)?", "flop/s, such as 1Gf"
)
# Settings whose value is a file or a program are not allowed (tracing/*, smpi/tmpdir, path, plugin,
# …).
SETTINGS_BY_SYNTAX = {
    PIECEWISE_SECONDS: "smpi/os smpi/ois smpi/or",
    PIECEWISE_FACTORS: "smpi/lat-factor smpi/bw-factor",
    FACTOR: "network/bandwidth-factor network/latency-factor",
    AMOUNT: "smpi/wtime smpi/init smpi/test smpi/iprobe smpi/iprobe-cpu-usage network/TCP-gamma network/loopback-bw "
    "network/loopback-lat network/weight-S maxmin/precision precision/timing precision/work-amount surf/precision",
    ANY_NUMBER: "smpi/cpu-threshold",
    BYTES: "smpi/async-small-thresh smpi/send-is-detached-thresh",
    LIMIT: "maxmin/concurrency-limit",
    WHOLE: "contexts/stack-size contexts/guard-size",
    FLAG: "smpi/grow-injected-times smpi/simulate-computation smpi/finalization-barrier smpi/barrier-finalization "
    "smpi/barrier-collectives network/crosstraffic network/maxmin-selective-update cpu/maxmin-selective-update",
    SPEED: "smpi/host-speed",
}
SYNTAX_BY_SETTING = {
    name: syntax for syntax, names in SETTINGS_BY_SYNTAX.items() for name in names.split()
}
# Settings whose values are names. These differ between versions of SimGrid, which itself refuses a
# wrong one.
NAMED_SETTINGS = {
    *(
        f"smpi/{name}"
        for name in ("buffering", "IB-penalty-factors", "coll-selector", "allgather", "allgatherv")
    ),
    *(
        f"smpi/{name}"
        for name in ("allreduce", "alltoall", "alltoallv", "barrier", "bcast", "gather", "reduce")
    ),
    *(
        "smpi/reduce-scatter",
        "smpi/scatter",
        "network/model",
        "network/optim",
        "network/solver",
        "cpu/model",
    ),
    *("cpu/optim", "cpu/solver", "host/model", "host/solver", "contexts/factory"),
}
KNOWN_SETTINGS = (*SYNTAX_BY_SETTING, *sorted(NAMED_SETTINGS))


def check_name(name: str) -> None:
    if name not in KNOWN_SETTINGS:
        raise UserError(
            f"found the setting '{make_printable(name, 60)}', which is not passed to SimGrid; {_suggest_setting(name)}"
        )


def check_value(name: str, value: str) -> None:
    """Raise an error for a wrong value of a known setting."""
    syntax = SYNTAX_BY_SETTING.get(name)
    if syntax and not re.fullmatch(syntax.pattern, value):
        raise UserError(f"found {show_value(value)}, wanted {syntax.description}")


def complete_value(name: str, value: str) -> str:
    """Return a value of a platform file as all versions of SimGrid read it; a wrong value
    unchanged.

    A single number is for all sizes, and a single time of a size has no time per byte. Later
    versions of SimGrid accept both, but SimGrid 3.32 fails on such a number, and reads beyond the
    end of such times.
    """
    syntax = SYNTAX_BY_SETTING.get(name)
    if syntax not in (PIECEWISE_FACTORS, PIECEWISE_SECONDS):
        return value
    completed = f"0:{value}" if re.fullmatch(NUMBER, value) else value
    if syntax is PIECEWISE_SECONDS:
        completed = re.sub(rf"(?<![^;])({SIZE}:{TIME})(?![^;])", r"\1:0", completed)
    return completed if re.fullmatch(syntax.pattern, completed) else value


def _suggest_setting(name: str) -> str:
    groups = ", ".join(dict.fromkeys(setting.partition("/")[0] for setting in KNOWN_SETTINGS))
    return (
        suggest_name(name, KNOWN_SETTINGS)
        if find_similar_name(name, KNOWN_SETTINGS)
        else f"wanted one of {groups}"
    )


MAX_FILE_BYTES = 64 * MIB
ELEMENTS = {
    *(
        "platform",
        "config",
        "prop",
        "AS",
        "zone",
        "host",
        "cluster",
        "cabinet",
        "peer",
        "router",
        "link",
        "link_ctn",
    ),
    *(
        "host_link",
        "backbone",
        "route",
        "ASroute",
        "zoneRoute",
        "bypassRoute",
        "bypassASroute",
        "bypassZoneRoute",
    ),
    *("trace", "trace_connect"),
}
# a link's attribute for each kind of trace
TRACE_ATTRIBUTES = {"BANDWIDTH": "bandwidth_file", "LATENCY": "latency_file"}
XML_HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
TRACE_LINE = re.compile(rf"\s*{NUMBER}\s+{NUMBER}\s*|\s*")
FILE_ATTRIBUTES = re.compile(r"(?i)(.*_)?file|content|path")
RADICAL = re.compile(r"[0-9]{1,8}(-[0-9]{1,8})?(,[0-9]{1,8}(-[0-9]{1,8})?)*")


def has_traces(network: Path) -> bool:
    """Return whether a link of a network changes over time. Without traces, a simulation has no
    noise."""
    return b"<trace_connect" in read_network(network).content


def write_network_with_traces(network: Path, folder: AnyPath) -> AnyPath | None:
    """Write a copy of a network whose traces are files that its links name. Return its path; None
    without traces.

    SimGrid 3.32 refuses `trace_connect` for links. Without `network/optim:Full`, it reports
    deadlocks when a trace changes a link.
    """
    from xml.etree import ElementTree as ET  # imported here, because few networks have traces

    root = ET.fromstring(read_network(network).content)  # noqa: S314, checked by `read_network`
    traces = {trace.get("id"): trace for trace in root.iter("trace")}
    connections = list(root.iter("trace_connect"))
    if not connections:
        return None
    links = {link.get("id"): link for link in root.iter("link")}
    for number, connection in enumerate(connections):
        trace = traces[connection.get("trace")]
        name = f"{network.stem}-{number}.trace"
        lines = [line.strip() for line in (trace.text or "").splitlines() if line.strip()]
        write_text(
            folder / name, "\n".join([f"PERIODICITY {trace.get('periodicity')}", *lines, ""])
        )
        links[connection.get("element")].set(TRACE_ATTRIBUTES[connection.get("kind", "")], name)
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in ("trace", "trace_connect")]:
            parent.remove(child)
    settings = root.find("config")
    if settings is None:
        settings = ET.Element("config")
        root.insert(0, settings)
    settings.append(ET.Element("prop", {"id": "network/optim", "value": "Full"}))
    write_text(folder / network.name, XML_HEAD + ET.tostring(root, "unicode"))
    return folder / network.name


@dataclass(frozen=True)
class SimulatedNetwork:
    """The XML, and the names of its hosts: single names, and clusters of numbers between a prefix
    and a suffix."""

    content: bytes
    hosts: frozenset[str]
    clusters: tuple[tuple[str, range, str], ...]
    first_host: str  # empty without hosts

    def list_missing_hosts(self, prefix: str, nodes: int) -> list[str]:
        """Return the hosts PREFIX0, PREFIX1, … that the network lacks."""
        wanted = dict.fromkeys(f"{prefix}{node}" for node in range(nodes))
        for name in self.hosts & wanted.keys():
            del wanted[name]
        for before, numbers, after in self.clusters:
            if before.startswith(prefix) or prefix.startswith(before):
                for number in numbers if wanted else ():
                    wanted.pop(f"{before}{number}{after}", None)
        return list(wanted)


def check_hosts(
    network: SimulatedNetwork, file: str, prefix: str, nodes: int
) -> tuple[str, str] | None:
    """Return the wrong key of the platform file and the error, if the network lacks a host; else
    None."""
    missing = network.list_missing_hosts(prefix, nodes)
    if not missing:
        return None
    advice = (
        f"the prefix of hosts like '{make_printable(network.first_host, 60)}'"
        if network.first_host
        else "hosts in it"
    )
    if len(missing) == nodes:
        return (
            "prefix",
            f"found '{prefix}', but {file} has no host '{missing[0]}'; wanted {advice}",
        )
    found = nodes - len(missing)
    return (
        "nodes",
        f"found {nodes}, but {file} has no host '{missing[0]}'; wanted at most {found} nodes",
    )


def read_network(path: Path) -> SimulatedNetwork:
    """Return a network from its XML. Refuse elements and settings that are not about hosts, links
    or time."""
    content = read_bytes(path, MAX_FILE_BYTES, "a SimGrid platform")
    parser = expat.ParserCreate()
    reader = _Reader(path, parser)
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.CharacterDataHandler = reader.text
    parser.buffer_text = True
    try:
        parser.Parse(content, True)
    # the last two: an unknown encoding
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise UserError(
            f"not XML: {error}", file=path, line=getattr(error, "lineno", None)
        ) from None
    return SimulatedNetwork(
        content=content,
        hosts=frozenset(reader.names),
        clusters=tuple(reader.clusters),
        first_host=reader.first_host,
    )


class _Reader:
    """The parser's handlers, which check elements and collect hosts."""

    def __init__(self, path: Path, parser: expat.XMLParserType) -> None:
        self.path = path
        self.parser = parser
        self.hosts = 0
        self.open_elements: list[str] = []
        self.names: set[str] = set()
        self.clusters: list[tuple[str, range, str]] = []
        self.first_host = ""
        self.trace = ""
        self.links: set[str] = set()
        self.traces: set[str] = set()

    def make_error(self, message: str) -> UserError:
        return UserError(message, file=self.path, line=self.parser.CurrentLineNumber)

    def doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        if internal:
            raise self.make_error("found a DOCTYPE with declarations, wanted none")

    def start(self, element: str, attributes: dict[str, str]) -> None:
        if not self.open_elements and element != "platform":
            raise self.make_error(f"found <{make_printable(element, 40)}>, wanted <platform>")
        if element not in ELEMENTS:
            raise self.make_error(
                f"found <{make_printable(element, 40)}>, which is not accepted in a network"
            )
        for name in attributes:
            if FILE_ATTRIBUTES.fullmatch(name):
                raise self.make_error(
                    f"found {name}= of <{element}>: a network may not name other files"
                )
        if element == "prop" and self.open_elements[-1] == "config":
            self.check_setting(attributes.get("id", ""), attributes.get("value", ""))
        if "radical" in attributes:
            ranges = self.parse_radical(attributes["radical"])
            before = attributes.get("prefix", "")
            after = attributes.get("suffix", "")
            self.clusters += [(before, numbers, after) for numbers in ranges if numbers]
            self.hosts += sum(map(len, ranges))
            self.first_host = self.first_host or f"{before}{ranges[0].start}{after}"
        elif element in ("host", "peer"):
            self.names.add(attributes.get("id", ""))
            self.hosts += 1
            self.first_host = self.first_host or attributes.get("id", "")
        if self.hosts > MAX_COUNT:
            raise self.make_error(f"found {self.hosts} hosts, wanted at most {MAX_COUNT}")
        self.links |= {attributes.get("id", "")} if element == "link" else set()
        self.traces |= {attributes.get("id", "")} if element == "trace" else set()
        if element == "trace" and not re.fullmatch(NUMBER, attributes.get("periodicity", "")):
            raise self.make_error(
                "found a <trace> without periodicity=, wanted its period in seconds"
            )
        if element == "trace_connect":
            kind = attributes.get("kind", "")
            if kind not in TRACE_ATTRIBUTES:
                raise self.make_error(
                    f"found kind='{make_printable(kind, 40)}', wanted {' or '.join(TRACE_ATTRIBUTES)}"
                )
            for name, ids in (("trace", self.traces), ("element", self.links)):
                found = attributes.get(name, "")
                if found not in ids:
                    kind = "link" if name == "element" else "trace"
                    raise self.make_error(
                        f"found {name}='{make_printable(found, 40)}', wanted the id of a <{kind}> above"
                    )
        self.open_elements.append(element)
        self.trace = ""

    def text(self, text: str) -> None:
        if self.open_elements and self.open_elements[-1] == "trace":
            self.trace += text

    def check_setting(self, name: str, value: str) -> None:
        try:
            check_name(name)
        except UserError as error:
            raise self.make_error(error.message) from None
        try:
            check_value(name, value)
        except UserError as error:
            raise self.make_error(f"{name}: {error.message}") from None

    def end(self, element: str) -> None:
        self.open_elements.pop()
        for line in self.trace.splitlines() if element == "trace" else ():
            if not TRACE_LINE.fullmatch(line):
                raise self.make_error(
                    f"found '{make_printable(line, 40)}' in a <trace>, wanted SECONDS VALUE in each line"
                )

    def parse_radical(self, radical: str) -> list[range]:
        if len(radical) > 10_000 or not RADICAL.fullmatch(radical):
            raise self.make_error(
                f"found the radical '{make_printable(radical, 40)}', wanted numbers such as 0-31"
            )
        ranges = []
        for part in radical.split(","):
            first, _, last = part.partition("-")
            ranges.append(range(int(first), int(last or first) + 1))
        return ranges
