"""Networks that surveys learned: kept by platform, read with it, and replaced by levels that its file names."""

from contextlib import chdir
from dataclasses import replace

import pytest

from commodel.errors import UserError
from commodel.plan.config import load_platform
from commodel.plan.surveys import LearnedNetwork, needs_survey, network_file, read_network, write_network

PLATFORM = "launcher: hosts\nnodes: 4\ncores: 2\nhosts: {names: [a, b, c, d, e]}\n"
LEVELS = {"leaf": (0, 0, 1, 1)}


@pytest.fixture
def place(tmp_path):
    """A project with a platform, in which the test runs."""
    (tmp_path / "params/platforms").mkdir(parents=True)
    with chdir(tmp_path):
        yield lambda text=PLATFORM: write(tmp_path / "params/platforms/here.yaml", text)


def write(path, text):
    path.write_text(text)
    return load_platform(path)


def learned(platform, **more):
    return LearnedNetwork("here", platform.digest, "first", "2026-01-02", 6, ("a", "b", "c", "d"), LEVELS, **more)


def test_a_learned_network_comes_back_and_gives_its_platform_levels(place):
    network = learned(place(), slow=("c",), notes=("pairs of class 2 differ",))
    path = write_network(network)
    assert read_network("here", network.digest) == network
    assert path == network_file("here", network.digest)
    assert place().hierarchy.settings == {"leaf": [0, 0, 1, 1]}
    assert not load_platform("params/platforms/here.yaml", learned=False).hierarchy.groups


def test_levels_of_the_file_go_before_learned_ones_and_another_platform_has_none(place):
    write_network(learned(place()))
    assert place(PLATFORM + "levels: {rack: 1}\n").hierarchy.settings == {"rack": [0, 1, 2, 3]}
    assert not place(PLATFORM.replace("nodes: 4", "nodes: 5")).hierarchy.groups


def test_one_experiment_surveys_and_others_use_what_it_learned(place):
    platform = place()
    assert needs_survey(platform, "here", "first")
    write_network(learned(platform))
    assert needs_survey(platform, "here", "first")
    assert not needs_survey(platform, "here", "second")
    slurm = "launcher: slurm\nnodes: 4\ncores: 2\n"  # each job may get other nodes
    for text in (PLATFORM + "levels: {leaf: 2}\n", PLATFORM.replace("nodes: 4", "nodes: 3"), slurm):
        assert not needs_survey(place(text), "here", "first")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("- 0\n", "- x\n"), "levels.leaf"),
        (("platform: here\n", ""), "platform"),
        (("pairs: 6", "pairs: -6"), "pairs"),
        (("leaf:", "node:"), "levels: found a level called"),
        (("digest: ", "digest: 1"), "digest: found '1"),
        (("  - 0\n", ""), "levels.leaf: found 3 nodes, wanted the platform's 4"),
    ],
)
def test_a_damaged_file_is_refused_by_line_and_key(place, change, complaint):
    network = replace(learned(place()), levels={"leaf": (0, 0, 1, 1)})
    path = write_network(network)
    text = path.read_text().replace("leaf: [0, 0, 1, 1]", "leaf:\n  - 0\n  - 0\n  - 1\n  - 1")
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(UserError, match=complaint):
        place()
