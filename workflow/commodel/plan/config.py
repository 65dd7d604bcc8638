"""Experiment and platform files: finding (`find_config_file`), reading and validation
(`load_experiment`, `load_platform`). A mistake in a file is a UserError with file, line and key.

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

from commodel.errors import UserError, suggest_name
from commodel.files import fields
from commodel.files import yaml as yamltext
from commodel.files.safe_paths import check_inside
from commodel.files.typed_records import make_user_error
from commodel.files.yaml import Document
from commodel.hierarchy import Hierarchy
from commodel.plan.experiments import PARAMETER_PREFIX, Block, Experiment, locate_errors
from commodel.plan.matrix import add_table
from commodel.plan.surveys import read_learned
from commodel.platforms.container import Image, compute_image_digest
from commodel.platforms.platform import Container, Platform
from commodel.platforms.simulated_networks import check_hosts, read_network
from commodel.sources import ROOT
from commodel.units import show_value

# Environment variable: trusted folders of images and libraries, with colons between.
TRUSTED_VARIABLE = "COMMODEL_TRUSTED"
FILE_NAME = re.compile(fields.NAME_PATTERN)
Model = TypeVar("Model", Experiment, Platform)

FILE_AXES = ("operation", "topology", "layout")  # axes whose values may name a file


def load_experiment(file: str | Path) -> Experiment:
    document = yamltext.read_yaml(file)
    experiment = _read_validated(Experiment, document)
    blocks = []
    for index, block in enumerate(experiment.matrix):
        block.set_location(document, ("matrix", index))
        blocks.append(add_table(block, block.table) if block.table else block)
        for path, spec in _list_specs(blocks[-1]):
            with locate_errors(blocks[-1], *path):
                check_inside(spec)
    return experiment.model_copy(update={"matrix": tuple(blocks)})


def _list_specs(block: Block) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the entries of a block that may name a file, each with its path of keys."""
    tables = {("axes",): block.axes} | {("zips", name): table for name, table in block.zips.items()}
    for path, table in tables.items():
        for name in FILE_AXES:
            for spec in table.get(name, ()):
                yield (*path, name), spec
        for key, values in table.items():
            if PARAMETER_PREFIX in key:
                name = key.removeprefix(PARAMETER_PREFIX)
                for value in values:
                    yield (*path, "parameters", name), f":{name}={value}"
    for index, entry in enumerate(block.include):
        for name in FILE_AXES:
            yield ("include", index, name), getattr(entry, name)
        for name, value in entry.parameters.items():
            yield ("include", index, "parameters", name), f":{name}={value}"


def load_platform(file: str | Path, use_learned_levels: bool = True) -> Platform:
    """Return the platform of a file; `use_learned_levels`: with the levels found by a survey if the
    file names none."""
    platform = _read_validated(Platform, yamltext.read_yaml(file))
    network = platform.simgrid_file
    if network:
        if not network.resolve().is_relative_to(Path(file).parent.resolve()):
            raise platform.error(
                ("simgrid", "file"), "found a link that leaves the folder of this file"
            )
        with locate_errors(platform, "simgrid", "file"):
            simulated_network = read_network(network)
        platform.set_network(simulated_network.content)
        mistake = check_hosts(
            simulated_network,
            platform.simgrid_section.file,
            platform.simgrid_section.prefix,
            platform.nodes,
        )
        if mistake:
            key, message = mistake
            raise platform.error(("nodes",) if key == "nodes" else ("simgrid", key), message)
    if platform.container:
        platform.set_image(_load_image(platform, platform.container))
    learned = read_learned(Path(file).stem, platform) if use_learned_levels else None
    if learned:
        platform.set_surveyed_levels(
            Hierarchy.of(learned.levels), learned.hosts if platform.takes_hosts_from_job else ()
        )
    return platform


def _load_image(platform: Platform, container: Container) -> Image:
    project = Path.cwd()
    file = project / container.image
    trusted_folders = () if container.image.startswith("/") else (project,)
    _check_trusted(platform, ("container", "image"), container.image, trusted_folders)
    if container.mpi:
        _check_trusted(platform, ("container", "mpi"), container.mpi)
    for number, folder in enumerate(container.bind):
        _check_trusted(platform, ("container", "bind", number), folder)
    with locate_errors(platform, "container", "image"):
        try:
            content = compute_image_digest(file)
        except OSError as error:
            message = (
                f"{file} cannot be read: {error.strerror}; make container builds build/commodel.sif"
            )
            raise UserError(message) from None
    return Image(
        file=file,
        digest=content,
        model=container.model,
        mpi=container.mpi or "",
        bind=container.bind,
        native=container.native or "",
    )


def _check_trusted(
    platform: Platform, key: tuple, path: str, trusted: tuple[Path, ...] = ()
) -> None:
    """Raise an error for an image or a folder of libraries outside of the folders that the user
    trusts.

    Both contain programs, and a platform file may come from an unknown source.
    """
    named = (
        Path(name)
        for name in os.environ.get(TRUSTED_VARIABLE, "").split(":")
        if name.startswith("/")
    )
    real = Path(path).resolve()
    if not any(real.is_relative_to(folder.resolve()) for folder in (*trusted, *named)):
        problem = (
            "is a link that leaves the project" if trusted else "is in no folder that you trust"
        )
        folder = real.parent if real.is_file() else real
        message = (
            f"found {show_value(path)}, which {problem}; if you trust it: export "
            f"{TRUSTED_VARIABLE}={folder}"
        )
        raise platform.error(key, message)


def _read_validated(model: type[Model], document: Document) -> Model:
    if not FILE_NAME.fullmatch(document.file.stem):
        raise UserError(
            "found this file name, wanted a-z, 0-9 and - only, at most 41, then .yaml",
            file=document.file,
        )
    try:
        loaded = model.model_validate(document.data)
    except ValidationError as errors:
        raise make_user_error(errors, document) from None
    loaded.set_location(document)
    return loaded


def find_config_file(kind: str, name: str, root: str | Path = ".") -> Path:
    """Return the file of an `experiment` or a `platform`, given by its name in params/ or by a
    path."""
    if "/" in name or name.endswith((".yaml", ".yml", ".xlsx")):
        if not Path(name).is_file():
            raise UserError("no such file", file=name)
        return Path(name)
    folder = Path(root) / "params" / f"{kind}s"
    by_name = {file.stem: file for file in folder.glob("*.yaml")}
    if not by_name:
        raise UserError(
            f"no {kind}s in {folder}: this is no project; commodel init DIR makes one, commodel -C DIR uses one"
        )
    if name not in by_name:
        shipped = ROOT / "params" / f"{kind}s"
        if (shipped / f"{name}.yaml").exists():
            raise UserError(
                f"unknown {kind} '{name}'; commodel includes one of that name: cp {shipped / name}.* {folder}"
            )
        advice = _advise_on_platform(name, Path(root)) if kind == "experiment" else ""
        if advice:
            raise UserError(f"unknown experiment '{name}'; a platform has this name: {advice}")
        raise UserError(f"unknown {kind} '{name}'; {suggest_name(name, by_name)}")
    return by_name[name]


def _advise_on_platform(name: str, root: Path) -> str:
    """Return advice for a user who named a platform instead of an experiment; empty if there is no
    such platform."""
    folder = root / "params" / "platforms"
    shipped = ROOT / "params" / "platforms"
    if (folder / f"{name}.yaml").exists():
        return f"write `platform: {name}` in an experiment to use it"
    return f"cp {shipped / name}.* {folder}" if (shipped / f"{name}.yaml").exists() else ""


def load_named_platform(name: str, root: str | Path = ".") -> Platform:
    """Return a platform, given by its name in params/ or by a path.

    A plan has only names of platforms, so that it can be copied with its project.
    """
    return load_platform(find_config_file("platform", name, root))


def make_schemas() -> dict[str, dict]:
    """Return the JSON Schemas by file name. Editors use them to complete keys."""
    return {
        f"{name}.schema.json": {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        | model.model_json_schema()
        for name, model in (("experiment", Experiment), ("platform", Platform))
    }


if __name__ == "__main__":
    for name, schema in make_schemas().items():
        Path(sys.argv[1], name).write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
