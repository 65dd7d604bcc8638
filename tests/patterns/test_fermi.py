"""The sixteen layouts of the τ–Lop paper: what its Table 1 counts, on a platform like its own, and what its kernels are
balanced to over the speeds that are declared for it."""

from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.patterns.layouts import Defaults, cores_of, full, place, processes_of, ranks_of
from commodel.patterns.rectangles import read
from commodel.plan.config import find, load_platform
from commodel.plan.planning import setting_of
from commodel.platforms.tools import ROOT

# Nodes of 12 and of 8 cores; processes on 6, 5, 4, 3 and 2 cores, GPU processes, all
TABLE_1 = {
    "M1": (1, 0, 2, 0, 0, 0, 0, 0, 2),
    "M2": (2, 0, 3, 1, 0, 0, 0, 1, 5),
    "M3": (2, 1, 3, 1, 2, 0, 0, 1, 7),
    "M4": (3, 1, 4, 1, 3, 0, 0, 3, 11),
    "M5": (3, 2, 4, 1, 4, 1, 0, 4, 14),
    "M6": (3, 3, 4, 1, 5, 1, 1, 6, 18),
    "M7": (4, 3, 6, 1, 5, 1, 1, 6, 20),
    "M8": (8, 0, 11, 3, 2, 0, 0, 7, 23),
    "M9": (9, 0, 12, 3, 3, 0, 0, 9, 27),
    "M10": (9, 1, 12, 3, 5, 0, 0, 9, 29),
    "M11": (9, 2, 12, 3, 6, 1, 0, 10, 32),
    "M12": (9, 3, 12, 3, 7, 1, 1, 12, 36),
    "M13": (9, 4, 12, 3, 9, 1, 1, 12, 38),
    "M14": (9, 5, 12, 3, 10, 2, 1, 13, 41),
    "M15": (9, 6, 12, 3, 11, 2, 2, 15, 45),
    "M16": (9, 7, 12, 3, 13, 2, 2, 15, 47),
}
# The paper does not say which process sits on which node. All its rows are what comes about where the nodes of a type
# take these in turn: every socket is one process, and the second one gives up a core for each GPU that is driven.
IN_TURN = {"fat": ((6, 6), (6, 5, "gpu"), (6, 4, "gpu", "gpu")), "thin": ((4, 4), (4, 3, "gpu"), (4, 2, "gpu", "gpu"))}
FERMI = load_platform(find("platform", "fermi", ROOT))


def test_all_of_table_1_is_there():
    assert {path.stem for path in ROOT.glob("params/layouts/fermi/*.csv")} == set(TABLE_1)


@pytest.mark.parametrize("name", TABLE_1)
def test_layouts_of_table_1(name):
    fat, thin, *processes, gpu, total = TABLE_1[name]
    spec = f"processes:{ROOT}/params/layouts/fermi/{name}.csv"
    setting = setting_of(FERMI)
    kinds = processes_of(full(spec, Defaults(0, setting.types, (), 12, setting.fewer_cores)), total, FERMI.types)
    cores, node = cores_of(spec, total), place(spec, total)
    on_cores = Counter(kept for kept, kind in zip(cores, kinds, strict=True) if not kind.endswith("gpu"))
    assert [on_cores[kept] for kept in (6, 5, 4, 3, 2)] == processes
    assert sum(kind.endswith("gpu") for kind in kinds) == gpu
    assert (len(kinds), ranks_of(spec)) == (total, total)
    used = np.unique(node)
    assert (np.sum(used < 9), np.sum(used >= 9)) == (fat, thin)
    assert np.bincount(node, cores)[used].tolist() == [12] * fat + [8] * thin  # no core is left over


@pytest.mark.parametrize("name", TABLE_1)
def test_nodes_take_processes_in_turn(name):
    fat, thin = TABLE_1[name][:2]
    nodes = [IN_TURN["fat"][number % 3] for number in range(fat)] + [
        IN_TURN["thin"][number % 3] for number in range(thin)
    ]
    numbers = [*range(fat), *range(9, 9 + thin)]
    rows = [(number, what) for number, held in zip(numbers, nodes, strict=True) for what in held]
    lines = (ROOT / f"params/layouts/fermi/{name}.csv").read_text().splitlines()
    wanted = [
        f"{rank},{node},{1 if what == 'gpu' else what},{'gpu' if what == 'gpu' else 'cpu'}"
        for rank, (node, what) in enumerate(rows)
    ]
    assert lines[1:] == wanted


BALANCED = {"summa-128": "gemm", "summa-256": "gemm", "wave2d-256": "wave", "wave2d-512": "wave"}


@pytest.mark.parametrize("kernel", BALANCED)
def test_every_layout_has_its_partitions(kernel):
    for name, row in TABLE_1.items():
        rectangles = read(ROOT / f"params/partitions/fermi/{kernel}/{name}.csv")
        assert rectangles.side == int(kernel.rpartition("-")[2]), name
        assert rectangles.ranks == row[-1], name
        assert (rectangles.area > 0).all(), name


@pytest.mark.parametrize(("kernel", "name"), list(zip(BALANCED, ["M16", "M10", "M1", "M6"], strict=True)))
def test_partitions_are_those_of_the_declared_speeds(kernel, name, tmp_path):
    """As `make partitions` asks for them."""
    words = ["--speeds", f"{ROOT}/params/speeds/fermi.yaml", "--platform", "fermi", "--kernel", BALANCED[kernel]]
    words += ["--blocks", kernel.rpartition("-")[2], "--layout", f"processes:{ROOT}/params/layouts/fermi/{name}.csv"]
    done = CliRunner().invoke(main, ["partition", *words, "-o", str(tmp_path / "again.csv")])
    assert done.exit_code == 0, done.output
    again, own = tmp_path / "again.csv", ROOT / f"params/partitions/fermi/{kernel}/{name}.csv"
    assert again.read_text() == own.read_text()
