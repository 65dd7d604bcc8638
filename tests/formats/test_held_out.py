"""Errors at held-out points of measurements in the form of PICO."""

from pathlib import Path

import pytest

from commodel.compare.held_out import tabulate_errors
from commodel.fits.measured_tables import read_points
from commodel.interchange import StatedProperties
from commodel_formats import pico
from tests.compare.test_held_out import OTHER_SIZES, held_out

REAL = Path(__file__).parents[3] / "shared" / "data" / "marenostrum5-collectives.csv"


@pytest.mark.skipif(not REAL.exists(), reason="no measurements of MareNostrum 5 beside this clone")
def test_other_sizes_of_a_real_machine(tmp_path):
    """In recursive doubling, pairs of ranks exchange whole vectors. Hockney is expected to be
    accurate for this algorithm."""
    imported = pico.read_file(REAL, StatedProperties())
    rows = [
        time
        for time in imported.times
        if time.algorithm == "recursive-doubling" and time.operation == "allreduce"
    ]
    table = tmp_path / "t.csv"
    columns = ("operation", "algorithm", "layout", "ranks", "bytes", "seconds")
    lines = [",".join(str(getattr(time, name)) for name in columns) for time in rows]
    table.write_text("\n".join([",".join(columns), *lines]) + "\n")
    (total,) = tabulate_errors(
        held_out(read_points(table), OTHER_SIZES, "hockney"), ["model"]
    ).to_dict("records")
    assert total["points"] == 8
    assert 1 < total["mu_median"] < 1.5
    assert total["mu_worst"] < 3
