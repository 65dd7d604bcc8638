"""Names of MPI libraries in output and in the names of files."""

import pytest

from commodel.interchange.folders.libraries import find_library


@pytest.mark.parametrize(
    ("text", "library"),
    [
        ("Open MPI v4.1.5, package: Open MPI", "Open MPI 4.1.5"),
        ("Loading openmpi/5.0.3rc1", "Open MPI 5.0.3rc1"),
        ("/opt/osu-benchmark/build.openmpi/mpi/collective/osu_allreduce", "Open MPI"),
        ("Intel(R) MPI Library 2021.9 for Linux", "Intel MPI 2021.9"),
        ("#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part", ""),
        ("MPICH Version:      4.2.1", "MPICH 4.2.1"),
        ("cray-mpich/8.1.32 is loaded", "Cray MPICH 8.1.32"),
        ("MVAPICH2 Version :     2.3.7", "MVAPICH 2.3.7"),
        ("Loading mpi/hpcx-pmix-2.18", "HPC-X"),
        ("ompi", "Open MPI"),
        ("a company", ""),
        ("osu_bcast MPI 3.1", ""),
    ],
)
def test_a_text_names_a_library(text, library):
    assert find_library(text, []) == library


def test_the_text_of_a_file_goes_before_its_name_and_this_before_a_folder():
    assert find_library("MPICH 4.2.1", ["openmpi-5.0.3.txt"]) == "MPICH 4.2.1"
    assert find_library("", ["osu.txt", "mpich-4.1.2", "openmpi-5.0.3"]) == "MPICH 4.1.2"
