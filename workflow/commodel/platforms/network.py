"""What a simulated network may say: SimGrid XML that describes hosts and links, and settings that change what they do.

SimGrid itself would do more for whoever wrote the file: load a library, read and write files of any name, and lay out
as many hosts as it is told to.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from commodel.errors import UserError, one_line
from commodel.files.text import MIB, read_bytes
from commodel.platforms.simgrid import check_name, check_value
from commodel.units import MAX_COUNT

MAX_FILE = 64 * MIB
ELEMENTS = {
    *("platform", "config", "prop", "AS", "zone", "host", "cluster", "cabinet", "peer", "router", "link", "link_ctn"),
    *("host_link", "backbone", "route", "ASroute", "zoneRoute", "bypassRoute", "bypassASroute", "bypassZoneRoute"),
}
FILES = re.compile(r"(?i)(.*_)?file|content|path")  # attributes that name one
RADICAL = re.compile(r"[0-9]{1,8}(-[0-9]{1,8})?(,[0-9]{1,8}(-[0-9]{1,8})?)*")


@dataclass(frozen=True)
class Network:
    """The XML, and what hosts are called there: one by one, or numbers between a prefix and a suffix."""

    content: bytes
    hosts: frozenset[str]
    clusters: tuple[tuple[str, range, str], ...]
    first: str  # of the hosts; empty where there is none

    def missing(self, prefix: str, nodes: int) -> list[str]:
        """Those of the hosts PREFIX0, PREFIX1, … that it does not have."""
        wanted = dict.fromkeys(f"{prefix}{node}" for node in range(nodes))
        for name in self.hosts & wanted.keys():
            del wanted[name]
        for before, numbers, after in self.clusters:
            if before.startswith(prefix) or prefix.startswith(before):
                for number in numbers if wanted else ():
                    wanted.pop(f"{before}{number}{after}", None)
        return list(wanted)


def check_hosts(network: Network, file: str, prefix: str, nodes: int) -> tuple[str, str] | None:
    """Which key of a platform names a host that its network does not have, and what to say of it."""
    missing = network.missing(prefix, nodes)
    if not missing:
        return None
    near = f"a prefix as of '{one_line(network.first, 60)}'" if network.first else "hosts in it"
    if len(missing) == nodes:
        return (
            "prefix",
            f"found '{prefix}', but {file} has no host '{missing[0]}'; wanted {near}",
        )
    known = nodes - len(missing)
    return "nodes", f"found {nodes}, but {file} has no host '{missing[0]}'; wanted at most {known} nodes"


def read_network(path: Path) -> Network:
    """A network's XML, if it describes that and does nothing else."""
    content = read_bytes(path, MAX_FILE, "a SimGrid platform")
    parser = expat.ParserCreate()
    reader = _Reader(path, parser)
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # the last two: an encoding that is none
        raise UserError(f"not XML: {error}", file=path, line=getattr(error, "lineno", None)) from None
    return Network(content, frozenset(reader.names), tuple(reader.clusters), reader.first)


class _Reader:
    """What the parser calls. Hosts are counted over the whole file."""

    def __init__(self, path: Path, parser: expat.XMLParserType) -> None:
        self.path, self.parser, self.open, self.hosts = path, parser, [], 0
        self.names: set[str] = set()
        self.clusters: list[tuple[str, range, str]] = []
        self.first = ""

    def refuse(self, message: str) -> UserError:
        return UserError(message, file=self.path, line=self.parser.CurrentLineNumber)

    def doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        if internal:
            raise self.refuse("found a DOCTYPE with declarations of its own, wanted none")

    def start(self, element: str, attributes: dict[str, str]) -> None:
        if not self.open and element != "platform":
            raise self.refuse(f"found <{one_line(element, 40)}>, wanted <platform>")
        if element not in ELEMENTS:
            raise self.refuse(f"found <{one_line(element, 40)}>, which is no part of a network here")
        for name in attributes:
            if FILES.fullmatch(name):
                raise self.refuse(f"found {name}= of <{element}>: a network here names no other files")
        if element == "prop" and self.open[-1] == "config":
            self.setting(attributes.get("id", ""), attributes.get("value", ""))
        if "radical" in attributes:
            ranges = self.numbers(attributes["radical"])
            before, after = attributes.get("prefix", ""), attributes.get("suffix", "")
            self.clusters += [(before, numbers, after) for numbers in ranges if numbers]
            self.hosts += sum(map(len, ranges))
            self.first = self.first or f"{before}{ranges[0].start}{after}"
        elif element in ("host", "peer"):
            self.names.add(attributes.get("id", ""))
            self.hosts += 1
            self.first = self.first or attributes.get("id", "")
        if self.hosts > MAX_COUNT:
            raise self.refuse(f"found {self.hosts} hosts, wanted at most {MAX_COUNT}")
        self.open.append(element)

    def setting(self, name: str, value: str) -> None:
        try:
            check_name(name)
        except UserError as error:
            raise self.refuse(error.message) from None
        try:
            check_value(name, value)
        except UserError as error:
            raise self.refuse(f"{name}: {error.message}") from None

    def end(self, element: str) -> None:
        self.open.pop()

    def numbers(self, radical: str) -> list[range]:
        if len(radical) > 10_000 or not RADICAL.fullmatch(radical):
            raise self.refuse(f"found the radical '{one_line(radical, 40)}', wanted numbers such as 0-31")
        ends = [[int(end) for end in part.split("-")] for part in radical.split(",")]
        return [range(part[0], part[-1] + 1) for part in ends]
