"""Sections of a platform file: what simgrid, slurm and hosts need to start programs, and the image that they run in."""

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from commodel.errors import UserError
from commodel.files import fields
from commodel.files.fields import WORD, Part, refused
from commodel.platforms.simgrid import check_name, check_value
from commodel.units import shown

FEATURE = fields.text(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a feature of A-Z, a-z, 0-9 and _ . -")
IMAGE = fields.text(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*", "a file of A-Z, a-z, 0-9 and _ . / + -", 500)
FOLDER = fields.text(r"(?!.*/\.\.?(/|$))/[A-Za-z0-9_./+-]*", "an absolute path of A-Z, a-z, 0-9 and _ . / + -", 500)


class SimGrid(Part):
    file: fields.FILE = Field(description="SimGrid platform XML, beside the platform file")
    prefix: fields.HOST = Field("node-", description="hosts are called PREFIX0, PREFIX1, …; as in the XML")
    config: dict[fields.SETTING_KEY, fields.SETTING] = Field(
        default_factory=dict, description="SimGrid settings, each given as --cfg=KEY:VALUE"
    )

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if ".." in Path(self.file).parts:
            raise refused(f"found {shown(self.file)}, wanted a file in the folder of this one", "file")
        if Path(self.file).suffix != ".xml":  # SimGrid would load a .so, and run it
            raise refused(f"found {shown(self.file)}, wanted a file .xml", "file")
        return self

    @field_validator("config")
    @classmethod
    def _checked(cls, config: dict[str, str]) -> dict[str, str]:
        for name, value in config.items():
            try:
                check_name(name)
                check_value(name, value)
            except UserError as error:
                raise refused(error.message, name) from None
        return config


class Slurm(Part):
    mpi: WORD = Field("pmi2", description="what srun --mpi= gets")
    features: dict[fields.NODE_TYPE, FEATURE] = Field(
        default_factory=dict, description="which feature Slurm gives the nodes of each type, where there are types"
    )


class Hosts(Part):
    names: tuple[fields.HOST, ...] = Field(description="machines, one a node", min_length=1)
    mpi: fields.one_of("openmpi", "mpich") = Field(
        "openmpi", description="which MPI's mpirun this is; mpich stands for all that have its hydra"
    )


class Container(Part):
    image: IMAGE = Field(description="in the project's folder, or an absolute path in a folder of $COMMODEL_TRUSTED")
    model: fields.one_of("hybrid", "bind") = Field(
        "hybrid", description="hybrid: with the MPI in the image; bind: with this machine's in its place"
    )
    mpi: FOLDER | None = Field(None, description="folder of this machine's MPI, for model: bind; mounted read-only")
    bind: tuple[FOLDER, ...] = Field((), description="more folders of this machine that are mounted read-only")
    native: fields.NAME | None = Field(None, description="the platform that is this machine without the image")

    @model_validator(mode="after")
    def _together(self) -> Self:
        if ".." in Path(self.image).parts:
            raise refused(f"found {shown(self.image)}, wanted a file below the project, or an absolute path", "image")
        if self.model == "bind" and self.mpi is None:
            raise refused("found no key 'mpi', the folder of the MPI that replaces the image's")
        if self.model == "hybrid" and self.mpi is not None:
            raise refused(f"found {shown(self.mpi)}, which only model: bind has", "mpi")
        return self
