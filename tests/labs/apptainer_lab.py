"""Fixtures of the Apptainer lab: an apptainer from unpacked packages, this clone's image, and
faulty images."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from commodel.platforms.toolchains import compute_native_digest
from commodel.platforms.tools import ROOT

SCRIPT = Path(__file__).with_name("apptainer.sh")
# Definitions of faulty images: without an MPI library, with another MPI, and of other C sources.
NO_MPI = """
Bootstrap: localimage
From: {rootfs}
%setup
    install -D {root}/build/mpi/player $APPTAINER_ROOTFS/opt/commodel/build/mpi/player
    patchelf --remove-rpath $APPTAINER_ROOTFS/opt/commodel/build/mpi/player
%labels
    commodel.native {digest}
"""
OPEN_MPI = """
Bootstrap: localimage
From: {rootfs}
%files
    {root}/workflow/native /opt/commodel/native
%labels
    commodel.native {digest}
%post
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends gcc libc6-dev libopenmpi-dev make openmpi-bin
    make -C /opt/commodel/native MPICC=mpicc BUILD=/opt/commodel/build/mpi
"""
OTHER_SOURCES = """
Bootstrap: localimage
From: {rootfs}
%labels
    commodel.native 000000000000
"""


def run_lab(*arguments: object) -> str:
    run = subprocess.run(
        [SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=1800, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout.strip()


@pytest.fixture(scope="session")
def apptainer(tmp_path_factory) -> dict[str, str]:
    """Return the environment variables that apptainer needs; its configuration is in a temporary
    folder."""
    missing = [name for name in ("apt-get", "dpkg", "unshare") if not shutil.which(name)]
    if os.geteuid() or missing:
        pytest.skip(
            "needs root"
            if os.geteuid()
            else f"no {', '.join(missing)}: the lab unpacks Debian packages"
        )
    config = tmp_path_factory.mktemp("apptainer")
    return {
        "PATH": f"{run_lab('tools')}:{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        # Root here may lack capabilities that apptainer passes to its processes.
        "APPTAINER_USERNS": "1",
        "COMMODEL_TRUSTED": "/",  # images and MPIs of the lab lie anywhere
        "APPTAINER_CONFIGDIR": str(config),
    }


@pytest.fixture(scope="session")
def image(apptainer) -> Path:
    return Path(run_lab("image"))


@pytest.fixture(scope="session")
def faulty_image(apptainer, tmp_path_factory):
    """Return a function that builds an image from a definition, once."""
    folder = tmp_path_factory.mktemp("images")

    def build(name: str, definition: str) -> Path:
        file, image = folder / f"{name}.def", folder / f"{name}.sif"
        if not image.exists():
            file.write_text(
                definition.format(
                    rootfs=run_lab("rootfs"), root=ROOT, digest=compute_native_digest()
                )
            )
            run_lab("build", file, image)
        return image

    return build


def make_platform_file(
    image: Path, launcher: str = "launcher: local\nnodes: 1", **keys: str
) -> str:
    """Return a platform file's text; its ranks run in an image."""
    section = ", ".join(f"{key}: {value}" for key, value in {"image": image, **keys}.items())
    return f"title: in the image\n{launcher}\ncores: 2\ncontainer: {{{section}}}\n"
