"""The fixtures of all labs; the first test that uses a lab starts it."""

from tests.labs.apptainer_lab import apptainer, faulty_image, image
from tests.labs.network_lab import lab
from tests.labs.pinned_mpi import pinned_mpi
from tests.labs.slurm_lab import project, shared_slurm, slurm
from tests.overlay.conftest import overlay_programs

__all__ = [
    "apptainer",
    "faulty_image",
    "image",
    "lab",
    "overlay_programs",
    "pinned_mpi",
    "project",
    "shared_slurm",
    "slurm",
]
