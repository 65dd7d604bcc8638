"""What a platform file may say: how many nodes and cores there are, and how programs are started on them.

Each launcher but `local` has a section of its own; a section of another launcher is refused.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from commodel import units
from commodel.errors import UserError
from commodel.files import axes, fields
from commodel.files.fields import RANKS, Part, kind, refused
from commodel.hierarchy import MOST_LEVELS, Hierarchy
from commodel.platforms.container import Image
from commodel.platforms.sections import Container, Hosts, SimGrid, Slurm
from commodel.platforms.sheet import DataSheet
from commodel.records import digest
from commodel.units import shown

MEMBERS = {"type": ["integer", "string"], "examples": ["0-15", "rack1-*"]}


def _level(value: Any) -> Any:
    """As it stands: what it means depends on how many nodes there are, and on their names."""
    if isinstance(value, list) and value:
        return tuple(tuple(group) if isinstance(group, list) else group for group in axes.bounded(value))
    return units.parse_count(value)


def _cores(value: Any) -> int:
    if value == "auto":
        return os.cpu_count() or 1
    if isinstance(value, str) and not any(map(str.isdigit, value)):
        raise UserError(f"found {shown(value)}, wanted a whole number, or 'auto' on this machine")
    return units.parse_count(value)


SECTIONS = ("simgrid", "slurm", "hosts")
SUBSTRATES = ("mpi", "overlay", "mrnet")
LEVEL = kind(
    _level,
    of=object,
    anyOf=[
        {"type": "integer", "minimum": 1},
        {"type": "array", "items": {"anyOf": [MEMBERS, {"type": "array", "items": MEMBERS}]}, "minItems": 1},
    ],
)


class Platform(Part):
    title: fields.TITLE = Field("", description="one line for the reports")
    launcher: fields.one_of("local", *SECTIONS) = Field(description="how programs are started there")
    substrate: fields.one_of(*SUBSTRATES) = Field(
        "mpi", description="what carries messages: MPI, an overlay network over TCP, or MRNet"
    )
    setting: fields.JOB = Field(
        "", description="what tells its jobs from others, such as rails=2 transport=ucx; left out: nothing"
    )
    nodes: RANKS = Field(description="nodes that one allocation may have")
    cores: kind(
        _cores,
        of=int,
        anyOf=[{"type": "integer", "minimum": 1}, {"const": "auto"}],
    ) = Field(description="ranks that a node can hold; auto, on a local platform: its processors")
    types: dict[fields.NODE_TYPE, RANKS] = Field(
        default_factory=dict,
        max_length=64,
        description="nodes of each type, in the order of the nodes; left out: all are alike",
    )
    fewer_cores: dict[fields.NODE_TYPE, RANKS] = Field(
        default_factory=dict, description="cores of the nodes of each type that has fewer than `cores`"
    )
    levels: dict[fields.NODE_TYPE, LEVEL] = Field(
        default_factory=dict,
        max_length=MOST_LEVELS,
        description="groups of nodes that nest, such as leaf switches, innermost first: nodes a group, or its nodes",
    )
    data_sheet: DataSheet | None = Field(
        None, description="what data sheets say of the network, for prices before anything is measured"
    )
    simgrid: SimGrid | None = Field(None, description="for launcher: simgrid")
    slurm: Slurm | None = Field(None, description="for launcher: slurm; may be left out")
    hosts: Hosts | None = Field(None, description="for launcher: hosts")
    container: Container | None = Field(None, description="an image that the programs run in; left out: none")
    _network: str = PrivateAttr("")
    _image: Image | None = PrivateAttr(None)

    @model_validator(mode="before")
    @classmethod
    def _launcher_rules(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("launcher") not in ("local", *SECTIONS):
            return data
        launcher = data["launcher"]
        for section in SECTIONS:
            if section in data and section != launcher:
                raise refused(f"found a section that launcher '{launcher}' does not have", section)
        if data.get("cores") == "auto" and launcher != "local":
            raise refused(f"found 'auto', wanted a number, since launcher '{launcher}' runs elsewhere", "cores")
        if launcher == "slurm" and data.get("slurm") is None:
            return data | {"slurm": {}}
        if launcher in SECTIONS and data.get(launcher) is None:
            raise refused(f"found no section '{launcher}', which launcher '{launcher}' needs")
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.container and self.simulated:
            raise refused(
                "found a section that launcher 'simgrid' does not have; `apptainer run IMAGE run EXPERIMENT` simulates "
                "inside an image",
                "container",
            )
        if self.overlay and self.simulated:
            raise refused(f"found '{self.substrate}', which no simulator runs: it is measured as itself", "substrate")
        if self.substrate == "mrnet" and self.launcher != "local":
            raise refused(
                f"found 'mrnet', which launcher '{self.launcher}' does not start; wanted 'local'", "substrate"
            )
        if self.overlay and self.container:
            message = f"found a section that substrate '{self.substrate}' does not have: it runs in no image"
            raise refused(message, "container")
        if self.types and sum(self.types.values()) != self.nodes:
            raise refused(f"found {sum(self.types.values())} nodes, wanted {self.nodes}, as in nodes", "types")
        for name, count in self.fewer_cores.items():
            if name not in self.types:
                raise refused(f"found {shown(name)}, which is none of `types`", "fewer_cores", name)
            if count >= self.cores:
                raise refused(f"found {count}, wanted fewer than cores, {self.cores}", "fewer_cores", name)
        if self.slurm and set(self.slurm.features) != set(self.types):
            found, wanted = (", ".join(sorted(names)) or "none" for names in (self.slurm.features, self.types))
            raise refused(f"found features of {found}, wanted one of each of the types: {wanted}", "slurm", "features")
        if self.nodes * self.cores > units.MAX_COUNT:
            raise refused(f"found {self.nodes} nodes of {self.cores}, wanted at most {units.MAX_COUNT} ranks", "nodes")
        if self.launcher == "local" and self.nodes != 1:
            raise refused(f"found {self.nodes}, wanted 1, since a local platform is this machine", "nodes")
        if self.hosts and self.nodes > len(self.hosts.names):
            raise refused(f"found {self.nodes}, wanted at most the {len(self.hosts.names)} of hosts.names", "nodes")
        if self.hosts and len(set(self.hosts.names)) < len(self.hosts.names):
            raise refused("found a host twice", "hosts", "names")
        try:
            _ = self.hierarchy
        except UserError as error:
            raise refused(error.message, "levels") from None
        if self.data_sheet:
            try:
                self.data_sheet.costs(self.hierarchy)
            except PydanticCustomError as error:
                raise refused(error.context["message"], "data_sheet", *error.context["path"]) from None
        return self

    @property
    def simulated(self) -> bool:
        return self.launcher == "simgrid"

    @property
    def overlay(self) -> bool:
        """Whether a tree of processes carries messages, and no MPI."""
        return self.substrate != "mpi"

    @property
    def slurm_mpi(self) -> str:
        """What srun is told to speak to the ranks; empty where srun does not start them."""
        return self.slurm.mpi if self.slurm and not self.overlay else ""

    @property
    def simgrid_file(self) -> Path | None:
        return self._document.file.parent / self.simgrid.file if self.simgrid and self._document else None

    @property
    def node_names(self) -> tuple[str, ...]:
        """What the nodes are called; empty where that is not known before a job runs."""
        if self.hosts:
            return self.hosts.names[: self.nodes]
        return tuple(f"{self.simgrid.prefix}{node}" for node in range(self.nodes)) if self.simgrid else ()

    @property
    def hierarchy(self) -> Hierarchy:
        """Which nodes are near each other, as `levels` says it."""
        return Hierarchy.written(self.levels, self.nodes, self.node_names)

    @property
    def digest(self) -> str:
        """Also of the simulated network and of the image themselves: another one is another platform. What is only said
        of it, its levels and data sheets, changes nothing that was measured; layouts that ask for levels name their
        groups."""
        apart = {"container", "data_sheet", "levels"}
        apart |= set() if self.overlay else {"substrate"}  # digests are as they were with MPI alone
        fresh = ("fewer_cores", "setting")  # and where nodes are alike, and jobs
        apart |= {name for name in fresh if not getattr(self, name)}
        settings = self.model_dump(mode="json", warnings="none", exclude=apart)
        image = self._image
        return digest([settings, self._network, *([image.digest, image.model, image.mpi, image.bind] if image else [])])

    @property
    def image(self) -> Image | None:
        """What the programs run in, with its digest."""
        return self._image

    def simulates(self, network: bytes) -> None:
        """Takes note of what the XML file holds."""
        self._network = hashlib.blake2b(network, digest_size=16).hexdigest()

    def runs_in(self, image: Image) -> None:
        """Takes note of the image that its container section names."""
        self._image = image
