# A package of Spack. Its place there: repos/spack_repo/builtin/packages/commodel/package.py
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Commodel(PythonPackage):
    """What MPI collectives cost on a cluster: predicted by published models, and measured."""

    # Spack makes the address of the release from this name.
    pypi = "commodel/commodel-0.1.0.tar.gz"

    license("Apache-2.0")

    # `make release` prints the sha256 of the release.
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("gmake", type=("build", "run"))
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@70.1:", type="build")

    depends_on("py-annotated-types", type=("build", "run"))
    depends_on("py-click", type=("build", "run"))
    depends_on("py-jinja2", type=("build", "run"))
    depends_on("py-markupsafe", type=("build", "run"))
    depends_on("py-numpy", type=("build", "run"))
    depends_on("py-openpyxl", type=("build", "run"))
    depends_on("py-pandas", type=("build", "run"))
    depends_on("py-pyarrow", type=("build", "run"))
    depends_on("py-pydantic@2:", type=("build", "run"))
    depends_on("py-pyyaml", type=("build", "run"))
    depends_on("py-scipy", type=("build", "run"))
    depends_on("py-vl-convert-python", type=("build", "run"))
    depends_on("py-xlsxwriter", type=("build", "run"))
    depends_on("snakemake@9.17:", type=("build", "run"))
    depends_on("py-snakemake-executor-plugin-slurm", type=("build", "run"))

    # The native programs are compiled in a project, with the MPI that is first on PATH there.
    depends_on("mpi", type="run")
