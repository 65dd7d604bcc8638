"""The MPI library of a run, from the descriptions of its programs."""

import json

import pandas as pd
import pytest

from commodel.compare.measured_defaults import read_library
from commodel.files.results_folder import Results
from commodel.records import LIBRARY

OPEN_MPI = "Open MPI v5.0.3, package: site"


@pytest.mark.parametrize(
    ("versions", "library"),
    [
        ([OPEN_MPI], OPEN_MPI),
        ([OPEN_MPI, OPEN_MPI], OPEN_MPI),
        ([OPEN_MPI, "MPICH Version: 5.0.2"], ""),
        ([], ""),
    ],
)
def test_the_library_is_that_of_all_programs_that_measured_the_default(tmp_path, versions, library):
    for number, version in enumerate(versions):
        folder = tmp_path / "raw" / f"batch{number}"
        folder.mkdir(parents=True)
        (folder / "library-2r-block.json").write_text(json.dumps({"mpi": version}))
    folder = tmp_path / "raw" / "other"
    folder.mkdir(parents=True)
    (folder / "library-2r-block.json").write_text(json.dumps({"mpi": "another"}))
    of_default = [f"batch{number}" for number in range(len(versions))]
    rows = pd.DataFrame(
        {
            "algorithm": [*(LIBRARY for _ in of_default), "ring", LIBRARY],
            "batch": [*of_default, "other", ""],
        }
    )
    assert read_library(Results.of(tmp_path), rows) == library
