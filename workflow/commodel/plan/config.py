"""Experiment and platform files: finding (`find`), reading and validation (`load_experiment`, `load_platform`). A
mistake in a file is a UserError with file, line and key.

`python -m commodel.plan.config workflow/schemas` writes the JSON Schemas for editors.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from commodel.errors import UserError, suggest
from commodel.files import fields
from commodel.files import yaml as yamltext
from commodel.files.safe_paths import check_inside
from commodel.files.typed_records import as_user_error
from commodel.files.yaml import Document
from commodel.hierarchy import Hierarchy
from commodel.plan.experiments import PARAMETER_PREFIX, Block, Experiment, locate_errors
from commodel.plan.matrix import with_table
from commodel.plan.surveys import read_learned
from commodel.platforms.container import Image, image_digest
from commodel.platforms.platform import Platform
from commodel.platforms.simulated_networks import check_hosts, read_network
from commodel.sources import ROOT
from commodel.units import shown

TRUSTED = "COMMODEL_TRUSTED"  # environment: folders, between colons, that images and libraries may be taken from
NAMED_FILE = re.compile(fields.NAME_PATTERN)
Model = TypeVar("Model", Experiment, Platform)

FILES = ("operation", "topology", "layout")  # axes whose values may name a file


def load_experiment(file: str | Path) -> Experiment:
    document = yamltext.read_yaml(file)
    experiment = _validated(Experiment, document)
    blocks = []
    for index, block in enumerate(experiment.matrix):
        block.set_location(document, ("matrix", index))
        blocks.append(with_table(block) if block.table else block)
        for path, spec in _specs(blocks[-1]):
            with locate_errors(blocks[-1], *path):
                check_inside(spec)
    return experiment.model_copy(update={"matrix": tuple(blocks)})


def _specs(block: Block) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the entries of a block that may name a file, each with its place."""
    tables = {("axes",): block.axes} | {("zips", name): table for name, table in block.zips.items()}
    for path, table in tables.items():
        yield from (((*path, name), spec) for name in FILES for spec in table.get(name, ()))
        named = (
            (name.removeprefix(PARAMETER_PREFIX), values) for name, values in table.items() if PARAMETER_PREFIX in name
        )
        yield from (((*path, "parameters", name), f":{name}={value}") for name, values in named for value in values)
    for index, entry in enumerate(block.include):
        yield from ((("include", index, name), getattr(entry, name)) for name in FILES)
        parameters = entry.parameters.items()
        yield from ((("include", index, "parameters", name), f":{name}={value}") for name, value in parameters)


def load_platform(file: str | Path, learned: bool = True) -> Platform:
    """Return the platform of a file; with `learned`, it gets the levels found by a survey if the file names none."""
    platform = _validated(Platform, yamltext.read_yaml(file))
    if network := platform.simgrid_file:
        if not network.resolve().is_relative_to(Path(file).parent.resolve()):
            raise platform.error(("simgrid", "file"), "found a link that leaves the folder of this file")
        with locate_errors(platform, "simgrid", "file"):
            described = read_network(network)
        platform.simulates(described.content)
        if wrong := check_hosts(described, platform.simgrid.file, platform.simgrid.prefix, platform.nodes):
            key, message = wrong
            raise platform.error(("nodes",) if key == "nodes" else ("simgrid", key), message)
    if platform.container:
        platform.runs_in(_image(platform))
    if learned and (network := read_learned(Path(file).stem, platform)):
        platform.learns(Hierarchy.of(network.levels), network.hosts if platform.slurm else ())
    return platform


def _image(platform: Platform) -> Image:
    wanted, project = platform.container, Path.cwd()
    file = project / wanted.image
    own = () if wanted.image.startswith("/") else (project,)
    _check_trusted(platform, ("container", "image"), wanted.image, own)
    if wanted.mpi:
        _check_trusted(platform, ("container", "mpi"), wanted.mpi)
    for number, folder in enumerate(wanted.bind):
        _check_trusted(platform, ("container", "bind", number), folder)
    with locate_errors(platform, "container", "image"):
        try:
            content = image_digest(file)
        except OSError as error:
            message = f"{file} cannot be read: {error.strerror}; make container builds build/commodel.sif"
            raise UserError(message) from None
    return Image(file, content, wanted.model, wanted.mpi or "", wanted.bind, wanted.native or "")


def _check_trusted(platform: Platform, place: tuple, path: str, own: tuple[Path, ...] = ()) -> None:
    """Refuse an image or a folder of libraries outside of the folders that the user trusts.

    Both contain programs, and a platform file may come from an unknown source.
    """
    folders = [*own, *(Path(name) for name in os.environ.get(TRUSTED, "").split(":") if name.startswith("/"))]
    real = Path(path).resolve()
    if not any(real.is_relative_to(folder.resolve()) for folder in folders):
        leads = "is a link that leaves the project" if own else "is in no folder that you trust"
        advised = real.parent if real.is_file() else real
        message = f"found {shown(path)}, which {leads}; if it may be used: export {TRUSTED}={advised}"
        raise platform.error(place, message)


def _validated(model: type[Model], document: Document) -> Model:
    if not NAMED_FILE.fullmatch(document.file.stem):
        raise UserError("found this file name, wanted a-z, 0-9 and - only, at most 41, then .yaml", file=document.file)
    try:
        loaded = model.model_validate(document.data)
    except ValidationError as errors:
        raise as_user_error(errors, document) from None
    loaded.set_location(document)
    return loaded


def find(kind: str, name: str, root: str | Path = ".") -> Path:
    """Return the file of an `experiment` or a `platform`, given by its name in params/ or by a path."""
    if "/" in name or name.endswith((".yaml", ".yml", ".xlsx")):
        if not Path(name).is_file():
            raise UserError("no such file", file=name)
        return Path(name)
    folder = Path(root) / "params" / f"{kind}s"
    known = {file.stem: file for file in folder.glob("*.yaml")}
    if not known:
        raise UserError(
            f"no {kind}s in {folder}: this is no project; commodel init DIR makes one, commodel -C DIR is in one"
        )
    if name not in known:
        ours = ROOT / "params" / f"{kind}s"
        if (ours / f"{name}.yaml").exists():
            raise UserError(f"unknown {kind} '{name}'; commodel comes with one: cp {ours / name}.* {folder}")
        if kind == "experiment" and (place := _platform(name, Path(root))):
            raise UserError(f"unknown experiment '{name}'; a platform is called so: {place}")
        raise UserError(f"unknown {kind} '{name}'; {suggest(name, known)}")
    return known[name]


def _platform(name: str, root: Path) -> str:
    """Return advice for a user who named a platform in place of an experiment; empty if there is no such platform."""
    folder, ours = root / "params" / "platforms", ROOT / "params" / "platforms"
    if (folder / f"{name}.yaml").exists():
        return f"an experiment runs there by `platform: {name}`"
    return f"cp {ours / name}.* {folder}" if (ours / f"{name}.yaml").exists() else ""


def planned_platform(name: str) -> Platform:
    """Return a platform of a plan from its present file, in the project that commodel runs in.

    A plan has no paths of platforms, so that it can be copied with its project.
    """
    return load_platform(find("platform", name))


def schemas() -> dict[str, dict]:
    """Return the JSON Schemas by file name, with which editors complete keys."""
    return {
        f"{name}.schema.json": {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema()
        for name, model in (("experiment", Experiment), ("platform", Platform))
    }


if __name__ == "__main__":
    for name, schema in schemas().items():
        Path(sys.argv[1], name).write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
