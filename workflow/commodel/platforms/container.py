"""Container images: the command of a program inside an image, and the check of the image
(`make_checked_prefix`).

The starter stays outside and every rank starts the image, so the MPI outside has to be compatible
with the one inside.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from commodel.errors import UserError, make_printable
from commodel.files.safe_reading import open_file
from commodel.platforms.mpi_libraries import explain_mismatch
from commodel.platforms.toolchains import compute_native_digest
from commodel.platforms.tools import find_tool, read_version, run_tool

RUNTIMES = ("apptainer", "singularity")
IMAGE_PROGRAMS = Path("/opt/commodel/build/mpi")  # inside, where container.def builds them
VERSION_LABEL = "org.opencontainers.image.version"
COMMIT_LABEL = "org.opencontainers.image.revision"
NATIVE_LABEL = "commodel.native"
REBUILD = "build it again: make container"


@dataclass(frozen=True)
class Image:
    """The image of a platform."""

    file: Path
    digest: str
    model: str  # hybrid: the MPI in the image; bind: the host's, in its place
    mpi: str = ""  # folder of the host's MPI, for model bind
    bind: tuple[str, ...] = ()  # more folders of the host, for reading
    native: str = ""  # the platform that is the same machine without the image

    def as_json(self) -> dict[str, str]:
        return {
            "image": self.file.name,
            "digest": self.digest,
            "model": self.model,
            "native": self.native,
        }


def compute_image_digest(file: Path) -> str:
    """Return the SHA-256 of the file, computed once per process as long as the file does not
    change."""
    state = file.stat()
    return _compute_sha256(file, state.st_size, state.st_mtime_ns)


@lru_cache
def _compute_sha256(file: Path, size: int, changed: int) -> str:
    with open_file(file) as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def find_runtime() -> str:
    """Return the program that starts images."""
    program = next(filter(None, map(find_tool, RUNTIMES)), None)
    if program is None:
        raise UserError(
            f"no {' or '.join(RUNTIMES)} found, which a platform with a container needs"
        )
    return program


def make_prefix(
    image: Image, runtime: str, folder: Path, work: Path, share_namespace: bool = False
) -> tuple[str, ...]:
    """Return the command prefix that runs a program in the image.

    The batch's folder keeps its path and is writable, and the environment is passed on, through
    which the starter communicates with its ranks. A site's further needs are set by variables of
    the runtime, such as APPTAINER_USERNS.
    """
    if re.search("[:,]", str(folder)):
        raise UserError(
            f"found a ':' or ',' in the path {folder}: {Path(runtime).name} cannot mount it"
        )
    mounts = [str(folder), *(f"{path}:{path}:ro" for path in (image.mpi, *image.bind) if path)]
    options = []
    for mount in mounts:
        options += ["--bind", mount]
    if image.mpi:
        options += [
            "--env",
            f"LD_LIBRARY_PATH={image.mpi}/lib:{image.mpi}/lib64:/.singularity.d/libs",
        ]
    if share_namespace:
        options += ["--sharens"]
    return (runtime, "--silent", "exec", *options, "--pwd", str(work), str(image.file))


def add_gpu_driver(image_command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command prefix of an image with the host's NVIDIA driver mounted into it."""
    place = image_command.index("exec") + 1
    return (*image_command[:place], "--nv", *image_command[place:])


def describe_image(image: Image) -> dict[str, Any]:
    """Return the record of an image: file name, digest, MPI, version, commit and runtime."""
    program = find_runtime()
    labels = _read_labels(image, program)
    return {
        **image.as_json(),
        "mpi": image.mpi,
        "version": labels.get(VERSION_LABEL, "unknown"),
        "commit": labels.get(COMMIT_LABEL, "unknown"),
        "runtime": read_version([program, "--version"]),
    }


def make_checked_prefix(
    image: Image, runtime: str, folder: Path, work: Path, starter: str, slurm_mpi: str = ""
) -> tuple[str, ...]:
    """Return the result of `make_prefix` for this machine, after a check of the image."""
    prefix = make_prefix(image, runtime, folder, folder)
    _check_image(image, runtime, prefix, starter, slurm_mpi)
    # Ranks that have each a user namespace of their own are not allowed to see each other's memory.
    namespace, _ = _run_and_explain([*prefix, "readlink", "/proc/self/ns/user"])
    has_own_namespace = namespace.strip() != os.readlink("/proc/self/ns/user")
    return make_prefix(
        image,
        runtime,
        folder,
        work,
        has_own_namespace and "--sharens" in _run_and_explain([runtime, "exec", "--help"])[0],
    )


def _check_image(
    image: Image, runtime: str, prefix: tuple[str, ...], starter: str, slurm_mpi: str
) -> None:
    """Raise an error for an image that does not start, lacks the programs of this clone, or has an
    incompatible MPI."""
    for path in (image.mpi, *image.bind):
        if path and not Path(path).is_dir():
            raise UserError(f"found no folder {path} on this machine")
    sources = _read_labels(image, runtime).get(NATIVE_LABEL)
    if sources != compute_native_digest():
        difference = f"was built from other C sources ({sources}, wanted {compute_native_digest()})"
        raise UserError(
            f"image {image.file.name} {difference if sources else 'has no programs of commodel'}; {REBUILD}"
        )
    program = str(IMAGE_PROGRAMS / "player")
    description, failure = _run_and_explain([*prefix, program, "--describe"])
    if failure:
        raise UserError(f"the programs in image {image.file.name} do not start: {failure}")
    reason = explain_mismatch(json.loads(description)["mpi"], starter, slurm_mpi)
    if reason:
        wanted = (
            "set `mpi: pmix` in its section slurm"
            if slurm_mpi
            else "put the mpiexec of that MPI on PATH"
        )
        raise UserError(f"image {image.file.name} has {reason}; {wanted}")
    if not image.mpi:
        return
    loaded = _find_loaded_mpi(prefix, program)
    if not loaded.startswith(f"{image.mpi}/"):
        raise UserError(
            f"the programs in image {image.file.name} load {loaded or 'no libmpi'}, nothing of {image.mpi}: "
            "model bind needs an MPI whose library has the same name as the image's"
        )


def _find_loaded_mpi(prefix: tuple[str, ...], program: str) -> str:
    """Return the MPI library that a program loads inside the image."""
    libraries, _ = _run_and_explain([*prefix, "ldd", program])
    match = re.search(r"libmpi\S* => (\S+)", libraries)
    return match[1] if match else ""


def _read_labels(image: Image, runtime: str) -> Mapping[str, str]:
    labels, failure = _run_and_explain([runtime, "inspect", "--json", "--labels", str(image.file)])
    if failure:
        raise UserError(f"{Path(runtime).name} cannot read image {image.file}: {failure}")
    return json.loads(labels)["data"]["attributes"].get("labels") or {}


def _run_and_explain(command: list[str]) -> tuple[str, str]:
    """Return the output, and of a failure the line with its reason, else an empty text."""
    reply = run_tool(command, 120)
    if not reply.failure:
        return reply.output, ""
    lines = [line for line in reply.errors.splitlines() if line.strip()] or [reply.failure]
    return reply.output, make_printable(
        next((line for line in lines if "FATAL" in line or "error" in line), lines[-1])
    )
