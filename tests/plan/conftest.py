"""Plans made from a matrix."""

import shutil

import pytest

from commodel.plan.planning import make_plan
from commodel.platforms.tools import ROOT
from tests.plan.planning import PLATFORM


@pytest.fixture
def planned(tmp_path):
    """Return planned(matrix, more, platform), which plans an experiment with this matrix, without a
    survey."""

    def plan(matrix, more="", platform=PLATFORM):
        for folder in ("platforms", "experiments"):
            (tmp_path / "params" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "params/platforms/big.yaml").write_text(platform)
        shutil.copy(ROOT / "tests/workflow/loggp-64.xml", tmp_path / "params/platforms")
        text = f"platform: big\nmodels: [hockney]\n{more}\nmatrix:\n{matrix}\n"
        (tmp_path / "params/experiments/e.yaml").write_text(text)
        return make_plan("e", tmp_path, survey=False)

    return plan
