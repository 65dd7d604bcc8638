"""The platform file: its sections, defaults and checks (`Platform`), and its data sheet of
switches.

It has the number of nodes and cores, and how programs are started. Each launcher but `local` has a
section of its own; sections of other launchers are refused. Data sheets describe a network before
it is measured: for every level, nodes innermost, a link to the next switch with its bandwidth,
latency and number. The links out of a group are shared by all messages that leave it; a message
takes one of them.
"""

import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from commodel import units
from commodel.errors import UserError
from commodel.files import fields, quantities
from commodel.files.fields import RANKS, WORD, FileMapping, convert, make_refusal
from commodel.hierarchy import MAX_LEVELS, MAX_SOCKETS, NODE, Hierarchy
from commodel.platforms.container import Image
from commodel.platforms.simulated_networks import check_name, check_value, complete_value
from commodel.records import compute_digest
from commodel.substrates import MPI, find_substrate
from commodel.units import show_value

FEATURE = Annotated[
    str, fields.match_text(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a feature of A-Z, a-z, 0-9 and _ . -")
]
IMAGE = Annotated[
    str,
    fields.match_text(
        r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*", "a file of A-Z, a-z, 0-9 and _ . / + -", 500
    ),
]
FOLDER = Annotated[
    str,
    fields.match_text(
        r"(?!.*/\.\.?(/|$))/[A-Za-z0-9_./+-]*",
        "an absolute path of A-Z, a-z, 0-9 and _ . / + -",
        500,
    ),
]


class SimGrid(FileMapping):
    file: fields.FILE = Field(description="SimGrid platform XML in the folder of the platform file")
    prefix: fields.HOST = Field(
        "node-", description="hosts are named PREFIX0, PREFIX1, … in the XML"
    )
    config: dict[fields.SETTING_KEY, fields.SETTING] = Field(
        default_factory=dict, description="SimGrid settings, each given as --cfg=KEY:VALUE"
    )

    @model_validator(mode="after")
    def _require_xml_in_folder(self) -> Self:
        if ".." in Path(self.file).parts:
            raise make_refusal(
                f"found {show_value(self.file)}, wanted a file in the folder of this one", "file"
            )
        if Path(self.file).suffix != ".xml":  # SimGrid would load a .so, and run it
            raise make_refusal(f"found {show_value(self.file)}, wanted a file .xml", "file")
        return self

    @field_validator("config")
    @classmethod
    def _check_and_complete(cls, config: dict[str, str]) -> dict[str, str]:
        completed = {name: complete_value(name, value) for name, value in config.items()}
        for name, value in completed.items():
            try:
                check_name(name)
                check_value(name, value)
            except UserError as error:
                raise make_refusal(error.message, name) from None
        return completed


MAX_GPUS = 1000  # of a node


def _read_gpus(value: Any) -> int | dict[str, int] | None:
    """Return the GPUs of every node, or those of a node of each type that has some."""
    if value is None:
        return None
    if not isinstance(value, dict):
        return units.parse_count(value, 1, MAX_GPUS)
    if not value:
        raise UserError("found no node type, wanted the GPUs of a node for each type")
    return {str(name): units.parse_count(count, 0, MAX_GPUS) for name, count in value.items()}


class Slurm(FileMapping):
    mpi: WORD = Field("pmi2", description="the value of srun --mpi=")
    features: dict[fields.NODE_TYPE, FEATURE] = Field(
        default_factory=dict,
        description="Slurm feature of the nodes of each type, if the platform has types",
    )
    gpus: Annotated[
        int | dict[str, int] | None,
        convert(
            _read_gpus,
            anyOf=[
                {"type": "integer", "minimum": 1, "maximum": MAX_GPUS},
                {
                    "type": "object",
                    "additionalProperties": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": MAX_GPUS,
                    },
                },
            ],
        ),
    ] = Field(
        None,
        description="GPUs of a node, or of each node type that has some: {fat: 2}. Jobs request them (sbatch "
        "--gres=gpu:N) if layouts have processes with device gpu; default: what the profile requests",
    )


class Hosts(FileMapping):
    names: tuple[fields.HOST, ...] = Field(
        (),
        description="host names, one for each node; default: those of the job that runs commodel",
        min_length=1,
    )
    mpi: Annotated[str, fields.choose_from("openmpi", "mpich")] = Field(
        "openmpi",
        description="MPI that provides mpirun; mpich stands for every MPI that uses hydra",
    )
    namespaces: bool = Field(False, description="the hosts are network namespaces of one machine")


class Container(FileMapping):
    image: IMAGE = Field(
        description="path in the project's folder, or an absolute path in a folder of $COMMODEL_TRUSTED"
    )
    model: Annotated[str, fields.choose_from("hybrid", "bind")] = Field(
        "hybrid", description="hybrid: use the MPI in the image; bind: use the MPI of the host"
    )
    mpi: FOLDER | None = Field(
        None, description="folder of the host's MPI for model: bind; mounted read-only"
    )
    bind: tuple[FOLDER, ...] = Field(
        (), description="further folders of the host that are mounted read-only"
    )
    native: fields.NAME | None = Field(
        None, description="name of the same platform without the image"
    )

    @model_validator(mode="after")
    def _check_image_keys(self) -> Self:
        if ".." in Path(self.image).parts:
            raise make_refusal(
                f"found {show_value(self.image)}, wanted a file below the project, or an absolute path",
                "image",
            )
        if self.model == "bind" and self.mpi is None:
            raise make_refusal(
                "found no key 'mpi', the folder of the MPI that replaces the image's"
            )
        if self.model == "hybrid" and self.mpi is not None:
            raise make_refusal(f"found {show_value(self.mpi)}, which only model: bind has", "mpi")
        return self


BANDWIDTH = Annotated[
    float, fields.convert_quantity(units.parse_bandwidth, "100 Gbit/s", unit_optional=False)
]
LATENCY = Annotated[
    float, fields.convert_quantity(units.parse_seconds, "0.7us", unit_optional=False)
]
COUNT = Annotated[int, fields.limit_count(1, units.MAX_COUNT)]
# largest bandwidth below a switch divided by that above it; the smallest is the inverse
MAX_OVERSUBSCRIPTION = 1000


def _read_oversubscription(value: object) -> float:
    if (
        not 1 / MAX_OVERSUBSCRIPTION
        <= (number := units.parse_number(value))
        <= MAX_OVERSUBSCRIPTION
    ):
        raise UserError(
            f"found {show_value(value)}, wanted a number from {1 / MAX_OVERSUBSCRIPTION:g} to {MAX_OVERSUBSCRIPTION}"
        )
    return number


FACTOR = Annotated[float, fields.convert_quantity(_read_oversubscription, "2")]
# keys of a link, of which one states its uplinks
UPLINK_KEYS = ("uplinks", "oversubscription", "ports")


class Link(FileMapping):
    bandwidth: BANDWIDTH = Field(description="bandwidth of one link in each direction")
    latency: LATENCY = Field(
        description="latency of one link and half of that of the switch at each end"
    )
    uplinks: COUNT | None = Field(
        None, description="number of uplinks of a group, or of rails of a node"
    )
    oversubscription: FACTOR | None = Field(
        None, description="bandwidth below a group's switch divided by the bandwidth above it"
    )
    ports: COUNT | None = Field(
        None, description="ports of a group's switch; ports without a downlink are uplinks"
    )

    @model_validator(mode="after")
    def _require_one_uplink_key(self) -> Self:
        if len(used_keys := [name for name in UPLINK_KEYS if getattr(self, name) is not None]) > 1:
            raise make_refusal(
                f"found {used_keys[0]} and {used_keys[1]}, wanted one of {', '.join(UPLINK_KEYS)}",
                used_keys[1],
            )
        return self


class Copying(FileMapping):
    bandwidth: BANDWIDTH = Field(description="bandwidth of one message")
    latency: LATENCY = Field(description="latency of a message")
    total: BANDWIDTH | None = Field(
        None,
        description="bandwidth of all such messages of a node together, or of a socket if it has sockets; default: no "
        "limit, which predictions remark",
    )


class Memory(Copying):
    between: Copying | None = Field(None, description="messages between the sockets of a node")


class DataSheet(FileMapping):
    links: dict[fields.NODE_TYPE, Link] = Field(
        description="an entry for `node` and for every level of `levels`"
    )
    memory: Memory | None = Field(
        None, description="messages within a node; default: they have no prediction"
    )
    sockets: Annotated[int, fields.limit_count(2, MAX_SOCKETS)] | None = Field(
        None,
        description="sockets of a node, among which its ranks are divided evenly, in order; default: not distinguished",
    )
    overhead: LATENCY | None = Field(
        None, description="software overhead at each end of a message; default: 0"
    )
    eager: fields.SIZE | None = Field(
        None, description="largest message sent before its receiver is ready; default: any"
    )

    @model_validator(mode="after")
    def _describe_sockets_completely(self) -> Self:
        between = self.memory.between if self.memory else None
        if self.sockets and not between:
            raise make_refusal(
                "found sockets, wanted memory.between, too: messages between them", "sockets"
            )
        if between and not self.sockets:
            raise make_refusal(
                "found messages between sockets, wanted the number of sockets", "memory", "between"
            )
        return self

    def compute_message_costs(
        self, levels: Hierarchy
    ) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
        """Return the costs of messages. For each distance class: seconds of a message without
        bytes, and seconds per byte of a single message. For each level: seconds per byte of all
        messages that leave a group together."""
        required = [NODE, *levels.groups]
        if set(self.links) != set(required):
            linked = ", ".join(self.links) or "none"
            raise make_refusal(
                f"found links of {linked}, wanted one of each of {', '.join(required)}", "links"
            )
        single = (
            {} if self.memory is None else {NODE: (self.memory.latency, 1 / self.memory.bandwidth)}
        )
        shared, latency, seconds_per_byte, below = {}, 0.0, 0.0, 0.0
        for number, (level, distance_class) in enumerate(
            zip(required, levels.names[1:], strict=True)
        ):
            link = self.links[level]
            latency, seconds_per_byte = (
                latency + 2 * link.latency,
                max(seconds_per_byte, 1 / link.bandwidth),
            )
            single[distance_class] = latency, seconds_per_byte
            try:
                below = _compute_uplink_bandwidth(link, levels, number, below)
            except UserError as error:
                raise make_refusal(error.message, "links", level) from None
            shared[level] = 1 / below
        return single, shared


def _compute_uplink_bandwidth(link: Link, levels: Hierarchy, level: int, below: float) -> float:
    """Return the bytes per second that a group can send to others; each of its members can send
    `below`."""
    if level == 0:
        for name in UPLINK_KEYS[1:]:
            if getattr(link, name) is not None:
                raise UserError(f"found {name}, wanted uplinks, or nothing for one")
        return (link.uplinks or 1) * link.bandwidth
    if link.uplinks:
        return link.uplinks * link.bandwidth
    if not (link.oversubscription or link.ports):
        raise UserError(
            f"found only its bandwidth and latency, wanted one of {', '.join(UPLINK_KEYS)}"
        )
    member_counts = levels.members(level)
    if min(member_counts) < max(member_counts):
        raise UserError(
            f"found groups of {min(member_counts)} and of {max(member_counts)}, wanted uplinks, since they differ"
        )
    if link.oversubscription:
        return member_counts[0] * below / link.oversubscription
    downlinks = (
        member_counts[0] * max(round(below / link.bandwidth), 1) if level > 1 else member_counts[0]
    )
    assert link.ports is not None
    if link.ports <= downlinks:
        raise UserError(f"found {link.ports} ports, wanted more than the {downlinks} links down")
    return (link.ports - downlinks) * link.bandwidth


MEMBERS = {"type": ["integer", "string"], "examples": ["0-15", "rack1-*"]}


def _read_level(value: Any) -> Any:
    """Return a level of the file unchanged; its meaning depends on the number and names of the
    nodes."""
    if isinstance(value, list) and value:
        return tuple(
            tuple(group) if isinstance(group, list) else group
            for group in quantities.check_entry_count(value)
        )
    return units.parse_count(value)


def _read_cores(value: Any) -> int:
    if value == "auto":
        return os.cpu_count() or 1
    if isinstance(value, str) and not any(map(str.isdigit, value)):
        raise UserError(
            f"found {show_value(value)}, wanted a whole number, or 'auto' on this machine"
        )
    return units.parse_count(value)


SECTIONS = ("simgrid", "slurm", "hosts")
LEVEL = Annotated[
    object,
    convert(
        _read_level,
        anyOf=[
            {"type": "integer", "minimum": 1},
            {
                "type": "array",
                "items": {"anyOf": [MEMBERS, {"type": "array", "items": MEMBERS}]},
                "minItems": 1,
            },
        ],
    ),
]


def _read_substrate(value: Any) -> str:
    if not isinstance(value, str):
        raise UserError(f"found {show_value(value)}, wanted a name")
    if value != MPI:
        find_substrate(value)
    return value


SUBSTRATE = Annotated[str, convert(_read_substrate, type="string", examples=[MPI])]


class Platform(FileMapping):
    title: fields.TITLE = Field("", description="one line for the reports")
    launcher: Annotated[str, fields.choose_from("local", *SECTIONS)] = Field(
        description="how programs are started"
    )
    substrate: SUBSTRATE = Field(
        MPI,
        description="transport of messages: MPI, or of an extension: `overlay` (processes over TCP), `mrnet`",
    )
    setting: fields.SETTING_NAME = Field(
        "", description="name of the setting of its allocations, such as rails=2 transport=ucx"
    )
    nodes: RANKS = Field(description="maximum number of nodes of one allocation")
    cores: Annotated[
        int, convert(_read_cores, anyOf=[{"type": "integer", "minimum": 1}, {"const": "auto"}])
    ] = Field(
        description="maximum number of ranks of a node; auto, on a local platform: its processors"
    )
    types: dict[fields.NODE_TYPE, RANKS] = Field(
        default_factory=dict,
        max_length=64,
        description="number of nodes of each type, in the order of the nodes; default: one type",
    )
    fewer_cores: dict[fields.NODE_TYPE, RANKS] = Field(
        default_factory=dict, description="number of cores of each type that has fewer than `cores`"
    )
    levels: dict[fields.NODE_TYPE, LEVEL] = Field(
        default_factory=dict,
        max_length=MAX_LEVELS,
        description="nested groups of nodes, such as leaf switches, innermost first: a size, or lists of nodes",
    )
    data_sheet: DataSheet | None = Field(
        None, description="the network by its data sheets, for predictions without measurements"
    )
    simgrid: SimGrid | None = Field(None, description="section of launcher simgrid")
    slurm: Slurm | None = Field(None, description="section of launcher slurm; optional")
    hosts: Hosts | None = Field(None, description="section of launcher hosts")
    container: Container | None = Field(None, description="image in which the programs run")
    _network: str = PrivateAttr("")
    _image: Image | None = PrivateAttr(None)
    _surveyed_levels: Hierarchy = PrivateAttr(default_factory=Hierarchy)
    _surveyed_hosts: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="before")
    @classmethod
    def _launcher_rules(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("launcher") not in ("local", *SECTIONS):
            return data
        launcher = data["launcher"]
        for section in SECTIONS:
            if section in data and section != launcher:
                raise make_refusal(
                    f"found a section that launcher '{launcher}' does not have", section
                )
        if data.get("cores") == "auto" and launcher != "local":
            raise make_refusal(
                f"found 'auto', wanted a number, since launcher '{launcher}' runs elsewhere",
                "cores",
            )
        if launcher == "slurm" and data.get("slurm") is None:
            return data | {"slurm": {}}
        if launcher in SECTIONS and data.get(launcher) is None:
            raise make_refusal(f"found no section '{launcher}', which launcher '{launcher}' needs")
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.container and self.simulated:
            raise make_refusal(
                "found a section that launcher 'simgrid' does not have; `apptainer run IMAGE run EXPERIMENT` simulates "
                "inside an image",
                "container",
            )
        if not self.uses_mpi and self.simulated:
            raise make_refusal(
                f"found '{self.substrate}', which no simulator runs; it can only be measured",
                "substrate",
            )
        launchers = () if self.uses_mpi else find_substrate(self.substrate).launchers
        if launchers and self.launcher not in launchers:
            wanted = " or ".join(f"'{launcher}'" for launcher in launchers)
            raise make_refusal(
                f"found '{self.substrate}', which launcher '{self.launcher}' does not start; wanted {wanted}",
                "substrate",
            )
        if not self.uses_mpi and self.container:
            message = (
                f"found a section that substrate '{self.substrate}' does not have: it runs in no "
                "image"
            )
            raise make_refusal(message, "container")
        if self.types and sum(self.types.values()) != self.nodes:
            raise make_refusal(
                f"found {sum(self.types.values())} nodes, wanted {self.nodes}, as in nodes", "types"
            )
        for name, count in self.fewer_cores.items():
            if name not in self.types:
                raise make_refusal(
                    f"found {show_value(name)}, which is none of `types`", "fewer_cores", name
                )
            if count >= self.cores:
                raise make_refusal(
                    f"found {count}, wanted fewer than cores, {self.cores}", "fewer_cores", name
                )
        if self.slurm and set(self.slurm.features) != set(self.types):
            found, wanted = (
                ", ".join(sorted(names)) or "none" for names in (self.slurm.features, self.types)
            )
            raise make_refusal(
                f"found features of {found}, wanted one of each of the types: {wanted}",
                "slurm",
                "features",
            )
        gpus = self.slurm.gpus if self.slurm else None
        for name in gpus if isinstance(gpus, dict) else ():
            if name not in self.types:
                raise make_refusal(
                    f"found {show_value(name)}, which is none of `types`", "slurm", "gpus", name
                )
        if self.nodes * self.cores > units.MAX_COUNT:
            raise make_refusal(
                f"found {self.nodes} nodes of {self.cores}, wanted at most {units.MAX_COUNT} ranks",
                "nodes",
            )
        if self.launcher == "local" and self.nodes != 1:
            raise make_refusal(
                f"found {self.nodes}, wanted 1, since a local platform is this machine", "nodes"
            )
        if self.hosts and self.hosts.names and self.nodes > len(self.hosts.names):
            raise make_refusal(
                f"found {self.nodes}, wanted at most the {len(self.hosts.names)} of hosts.names",
                "nodes",
            )
        if self.hosts and len(set(self.hosts.names)) < len(self.hosts.names):
            raise make_refusal("found a host twice", "hosts", "names")
        try:
            _ = self.hierarchy
        except UserError as error:
            raise make_refusal(error.message, "levels") from None
        if self.data_sheet:
            try:
                self.data_sheet.compute_message_costs(self.hierarchy)
            except PydanticCustomError as error:
                context = error.context or {}
                raise make_refusal(context["message"], "data_sheet", *context["path"]) from None
        return self

    @property
    def simgrid_section(self) -> SimGrid:
        """The section of a simulated platform."""
        assert self.simgrid is not None
        return self.simgrid

    @property
    def slurm_section(self) -> Slurm:
        """The section of a platform whose launcher is Slurm."""
        assert self.slurm is not None
        return self.slurm

    @property
    def hosts_section(self) -> Hosts:
        """The section of a platform whose launcher is that of hosts."""
        assert self.hosts is not None
        return self.hosts

    @property
    def simulated(self) -> bool:
        return self.launcher == "simgrid"

    @property
    def uses_mpi(self) -> bool:
        """Whether MPI transports messages, not a substrate of an extension."""
        return self.substrate == MPI

    @property
    def slurm_mpi(self) -> str:
        """The protocol of srun for MPI; empty if srun does not start the ranks."""
        return self.slurm.mpi if self.slurm and self.uses_mpi else ""

    @property
    def gpus_of_types(self) -> dict[str, int]:
        """The GPUs of a node of each type, of `node` without types; empty if unknown."""
        gpus = self.slurm.gpus if self.slurm else None
        if gpus is None:
            return {}
        if isinstance(gpus, dict):
            return {name: gpus.get(name, 0) for name in self.types}
        return dict.fromkeys(self.types or [NODE], gpus)

    def list_gpus(self, nodes: Collection[int]) -> list[int]:
        """Return the number of GPUs of each of some nodes; empty if unknown."""
        gpus = self.gpus_of_types
        if not gpus or not self.types:
            return [number for number in gpus.values() for _ in nodes]
        of_nodes = [gpus[name] for name, count in self.types.items() for _ in range(count)]
        return [of_nodes[node] for node in nodes]

    @property
    def takes_hosts_from_job(self) -> bool:
        """Whether a scheduler decides which hosts the nodes are, for each job."""
        return self.slurm is not None or (self.hosts is not None and not self.hosts.names)

    @property
    def simgrid_file(self) -> Path | None:
        if not (self.simgrid and self._document):
            return None
        return Path(str(self._document.file)).parent / self.simgrid.file

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of the nodes; empty if unknown before a job runs. Those of a job are known
        after a survey."""
        if self.hosts and self.hosts.names:
            return self.hosts.names[: self.nodes]
        return (
            tuple(f"{self.simgrid.prefix}{node}" for node in range(self.nodes))
            if self.simgrid
            else self._surveyed_hosts
        )

    @property
    def hierarchy(self) -> Hierarchy:
        """The groups of nodes that are near each other: those of `levels`, else those that a survey
        found."""
        return (
            Hierarchy.written(self.levels, self.nodes, self.node_names)
            if self.levels
            else self._surveyed_levels
        )

    @property
    def digest(self) -> str:
        """The digest of the settings, with the simulated network and the image.

        The title, levels and data sheets are left out. Measurements depend on levels only by
        layouts, whose full specs have the groups.
        """
        excluded = {"title", "container", "data_sheet", "levels"}
        settings = self.model_dump(mode="json", warnings="none", exclude=excluded)
        image = self._image
        return compute_digest(
            [
                settings,
                self._network,
                *([image.digest, image.model, image.mpi, image.bind] if image else []),
            ]
        )

    @property
    def image(self) -> Image | None:
        """The image in which programs run, with its digest."""
        return self._image

    def set_network(self, network: bytes) -> None:
        """Set the content of the XML file, which is part of the digest."""
        self._network = hashlib.blake2b(network, digest_size=16).hexdigest()

    def set_surveyed_levels(self, levels: Hierarchy, hosts: tuple[str, ...] = ()) -> None:
        """Set the levels that a survey found, for a platform file without levels, and the hosts of
        the survey's Slurm job."""
        self._surveyed_levels, self._surveyed_hosts = levels, hosts

    def set_image(self, image: Image) -> None:
        """Set the image that the section `container` names."""
        self._image = image
