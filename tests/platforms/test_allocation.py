"""What Slurm says about an allocation is read right, and asked for right. The real Slurm is in tests/lab."""

import pytest

from commodel.errors import UserError
from commodel.plan.config import load_platform
from commodel.platforms.slurm import by_type, constraint, features_of, mpi_types, wanted_types

TYPED = "launcher: slurm\nnodes: 5\ncores: 2\ntypes: {fat: 2, thin: 3}\nslurm: {features: {fat: bigmem, thin: std}}\n"
NODES = "\n".join(
    f"NodeName={name} Arch=x86_64 AvailableFeatures={features} ActiveFeatures={features} OS=Linux #1 SMP RealMemory=1"
    for name, features in [("a1", "std"), ("a2", "std,bigmem"), ("b1", "bigmem"), ("b2", "std"), ("b3", "(null)")]
)


@pytest.fixture
def typed(tmp_path):
    path = tmp_path / "mine.yaml"

    def load(text=TYPED):
        path.write_text(text)
        return load_platform(path)

    return load


@pytest.mark.parametrize(
    ("nodes", "asked"), [(1, "[bigmem*1]"), (2, "[bigmem*2]"), (3, "[bigmem*2&std*1]"), (5, "[bigmem*2&std*3]")]
)
def test_an_allocation_holds_the_first_nodes_of_the_platform(typed, nodes, asked):
    assert constraint(typed(), nodes) == asked


def test_nodes_that_are_alike_need_no_constraint(typed):
    assert constraint(typed("launcher: slurm\nnodes: 5\ncores: 2\n"), 3) == ""
    assert constraint(typed("launcher: local\nnodes: 1\ncores: 2\n"), 1) == ""


def test_nodes_are_ordered_by_type_each_once(typed):
    names = ("a1", "a2", "b1", "b2", "b3")
    features = features_of(NODES)
    assert features["a2"] == {"std", "bigmem"}
    assert by_type(names, features, wanted_types(typed(), 4)) == ("a2", "b1", "a1", "b2")
    with pytest.raises(UserError, match="2 nodes with feature 'std', wanted 3"):
        by_type(names, features, wanted_types(typed(), 5))


@pytest.mark.parametrize("features", ["{fat: bigmem}", "{}", "{fat: a, thin: b, slim: c}", "{fat: 'a&b', thin: c}"])
def test_types_need_a_feature_each(typed, features):
    with pytest.raises(UserError, match=r"mine.yaml:5: slurm.features"):
        typed(TYPED.replace("{fat: bigmem, thin: std}", features))


@pytest.mark.parametrize(
    "listing",
    [
        "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions available: pmix_v4,pmix_v3\n",
        "srun: MPI types are...\nsrun: pmix\nsrun: none\nsrun: pmi2\nsrun: pmix_v4\nsrun: pmix_v3\n",
    ],
)
def test_what_srun_offers(listing):
    assert mpi_types(listing) == ["pmix", "none", "pmi2", "pmix_v4", "pmix_v3"]
