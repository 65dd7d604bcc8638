"""The partitions of the cluster Fermi in params/partitions."""

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.platforms.tools import ROOT
from commodel_kernels.rectangles import read_rectangles
from tests.patterns.test_layouts import TABLE_1

KERNEL_OF_PARTITION_SET = {
    "summa-128": "gemm",
    "summa-256": "gemm",
    "wave2d-256": "wave",
    "wave2d-512": "wave",
}


@pytest.mark.parametrize("partition_set", KERNEL_OF_PARTITION_SET)
def test_every_layout_of_table_1_has_a_partition_for_all_ranks(partition_set):
    for name, row in TABLE_1.items():
        rectangles = read_rectangles(ROOT / f"params/partitions/fermi/{partition_set}/{name}.csv")
        assert rectangles.side == int(partition_set.rpartition("-")[2]), name
        assert rectangles.ranks == row[-1], name
        assert (rectangles.area > 0).all(), name


@pytest.mark.parametrize(
    ("partition_set", "name"),
    list(zip(KERNEL_OF_PARTITION_SET, ["M16", "M10", "M1", "M6"], strict=True)),
)
def test_partition_files_equal_the_output_of_the_partition_command(partition_set, name, tmp_path):
    """`make partitions` writes these files."""
    options = ["--speeds", f"{ROOT}/params/speeds/fermi.yaml", "--platform", "fermi"]
    options += ["--kernel", KERNEL_OF_PARTITION_SET[partition_set]]
    options += [
        "--blocks",
        partition_set.rpartition("-")[2],
        "--layout",
        f"processes:{ROOT}/params/layouts/fermi/{name}.csv",
    ]
    done = CliRunner().invoke(main, ["partition", *options, "-o", str(tmp_path / "again.csv")])
    assert done.exit_code == 0, done.output
    again, stored = (
        tmp_path / "again.csv",
        ROOT / f"params/partitions/fermi/{partition_set}/{name}.csv",
    )
    assert again.read_text() == stored.read_text()
