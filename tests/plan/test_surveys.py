"""Networks from surveys: stored by platform, read with the platform file, replaced by levels that
this file names."""

from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.safe_paths import SafePath
from commodel.plan.config import load_platform
from commodel.plan.planning import find_constraint, find_gres, find_nodelist, make_plan
from commodel.plan.surveys import (
    LearnedNetwork,
    find_network_file,
    is_survey,
    list_hosts,
    list_networks_needed,
    needs_survey,
    read_network,
    write_network,
)
from commodel.results.campaign import Campaign, forget_surveys

PLATFORM = "launcher: hosts\nnodes: 4\ncores: 2\nhosts: {names: [a, b, c, d, e]}\n"
LEVELS = {"leaf": (0, 0, 1, 1)}


@pytest.fixture
def place(tmp_path):
    """Run the test in a project; yield a function that writes and reads the platform file."""
    (tmp_path / "params/platforms").mkdir(parents=True)
    with chdir(tmp_path):
        yield lambda text=PLATFORM: write(tmp_path / "params/platforms/here.yaml", text)


def write(path, text):
    path.write_text(text)
    return load_platform(path)


def learned(platform, **more):
    return LearnedNetwork(
        "here", platform.digest, "first", "2026-01-02", 6, ("a", "b", "c", "d"), LEVELS, **more
    )


def test_a_learned_network_is_read_back_and_gives_the_platform_levels(place):
    network = learned(place(), slow=("c",), notes=("pairs of class 2 differ",))
    path = write_network(network)
    assert read_network("here", network.digest) == network
    assert path == find_network_file("here", network.digest)
    assert place().hierarchy.group_lists == {"leaf": [0, 0, 1, 1]}
    assert not load_platform(
        "params/platforms/here.yaml", use_learned_levels=False
    ).hierarchy.groups


def test_levels_of_the_file_go_before_learned_ones_and_another_platform_has_none(place):
    write_network(learned(place()))
    assert place(PLATFORM + "levels: {rack: 1}\n").hierarchy.group_lists == {"rack": [0, 1, 2, 3]}
    assert not place(PLATFORM.replace("nodes: 4", "nodes: 5")).hierarchy.groups


def test_other_experiments_use_a_learned_network_without_a_survey(place):
    platform = place()
    assert needs_survey(platform, "here", "first")
    write_network(learned(platform))
    assert needs_survey(platform, "here", "first")
    assert not needs_survey(platform, "here", "second")
    for text in (PLATFORM + "levels: {leaf: 2}\n", PLATFORM.replace("nodes: 4", "nodes: 3")):
        assert not needs_survey(place(text), "here", "first")


SLURM = "launcher: slurm\nnodes: 4\ncores: 2\n"
ON_SLURM = """
platform: here
models: [pram]
library: false
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: [2, 4], bytes: 8}
"""


@pytest.fixture
def on_slurm(place):
    """Return a function that makes the plan of an experiment on a Slurm platform."""
    Path("params/experiments").mkdir()

    def plan(name="first", text=SLURM, experiment=ON_SLURM, **options):
        place(text)
        Path(f"params/experiments/{name}.yaml").write_text(experiment)
        return make_plan(name, Path(), **options)

    return plan


def test_slurm_jobs_request_the_surveyed_hosts_in_their_order(place, on_slurm):
    """A run makes its plan before the survey; the network file exists once the later jobs are
    submitted."""
    before = on_slurm()
    survey, *others = before.batches
    assert is_survey(survey)
    assert len(others) == 3
    assert list_networks_needed(before, survey.name) == []
    path = str(find_network_file("here", place(SLURM).digest))
    assert [list_networks_needed(before, batch.name) for batch in others] == [[path]] * 3
    assert {find_nodelist(before, batch.name) for batch in before.batches} == {""}
    write_network(replace(learned(place(SLURM)), hosts=("d", "c", "b", "a")))
    assert [find_nodelist(before, batch.name) for batch in before.batches] == [
        "",
        "d,c,b,a",
        "d,c",
        "d,c,b,a",
    ]
    after = on_slurm("second")
    assert after.platforms["here"].hosts == ("d", "c", "b", "a")
    assert after.platforms["here"].levels == LEVELS
    assert [list_hosts(after, batch) for batch in after.batches[-2:]] == [
        ("d", "c"),
        ("d", "c", "b", "a"),
    ]
    without = on_slurm("second", survey=False)
    assert not without.platforms["here"].hosts
    assert {find_nodelist(without, batch.name) for batch in without.batches} == {""}
    assert {find_nodelist(after, batch.name) for batch in after.batches} == {"d,c", "d,c,b,a"}


def test_deleting_a_network_file_causes_a_new_survey(place, on_slurm):
    """Samples are discarded only if a network file was written; a run that was killed before reuses
    them."""
    campaign = Campaign(on_slurm(), SafePath.at(Path("results/first")))
    survey, *others = campaign.plan.batches
    for batch in campaign.plan.batches:
        write_text(campaign.done_file(batch), "")
        for case in batch.ids:
            write_text(campaign.results.raw(batch.name) / f"{case}.csv", "")
    forget_surveys(campaign)
    assert campaign.unfinished == []
    path = write_network(learned(place(SLURM)))
    write_text(campaign.results.learned(survey.name), path.read_text())
    forget_surveys(campaign)
    assert campaign.unfinished == []
    path.unlink()
    forget_surveys(campaign)
    assert campaign.unfinished == [survey]
    assert campaign.finished == others


def test_jobs_request_gpus_if_processes_of_their_layouts_drive_them(on_slurm):
    Path("mine.csv").write_text("rank,node,cores,device\n0,0,1,cpu\n1,0,1,gpu\n")
    with_gpus, without = SLURM + "slurm: {gpus: 2}\n", SLURM
    drives = ON_SLURM.replace("ranks: [2, 4]", '"layout": "processes:mine.csv"')
    wanted = [(with_gpus, drives, "gpu:2"), (with_gpus, ON_SLURM, ""), (without, drives, "")]
    for text, experiment, gres in wanted:
        plan = on_slurm(text=text, experiment=experiment)
        of_points = [batch.name for batch in plan.batches if batch.points]
        assert {find_gres(plan, name) for name in of_points} == {gres}
        assert {find_gres(plan, batch.name) for batch in plan.batches} == {gres, ""}


TYPED = SLURM + "types: {fat: 2, thin: 2}\nslurm: {features: {fat: f, thin: t}, gpus: GPUS}\n"


def test_a_job_requests_as_many_gpus_of_each_node_as_the_node_with_fewest_has(on_slurm):
    Path("mine.csv").write_text("rank,node,cores,device\n0,0,1,gpu\n1,2,1,gpu\n2,1,1,gpu\n")
    drives = ON_SLURM.replace("ranks: [2, 4]", '"layout": "processes:mine.csv"')
    plan = on_slurm(text=TYPED.replace("GPUS", "{fat: 4, thin: 1}"), experiment=drives)
    assert {find_gres(plan, batch.name) for batch in plan.batches} == {"gpu:1", ""}


def test_a_job_with_nodes_without_gpus_cannot_request_them(on_slurm):
    Path("mine.csv").write_text("rank,node,cores,device\n0,0,1,gpu\n1,2,1,cpu\n2,1,1,gpu\n")
    drives = ON_SLURM.replace("ranks: [2, 4]", '"layout": "processes:mine.csv"')
    with pytest.raises(UserError, match="found no GPU on node 2 of the job, which processes:"):
        on_slurm(text=TYPED.replace("GPUS", "{fat: 4}"), experiment=drives)


def test_a_layout_with_more_gpus_than_the_platform_has_is_refused(on_slurm):
    Path("mine.csv").write_text("rank,node,cores,device\n0,0,1,gpu\n1,0,1,gpu\n")
    drives = ON_SLURM.replace("ranks: [2, 4]", '"layout": "processes:mine.csv"')
    with pytest.raises(UserError, match="found 2 times device gpu on node 0, wanted at most 1 GPU"):
        on_slurm(text=SLURM + "slurm: {gpus: 1}\n", experiment=drives)


def test_hosts_that_are_requested_by_name_need_no_features(place, on_slurm):
    typed = SLURM + "types: {fat: 2, thin: 2}\nslurm: {features: {fat: f, thin: t}}\n"
    platform = place(typed)
    plan = on_slurm(text=typed)
    assert [find_constraint(plan, batch.name) for batch in plan.batches[-2:]] == [
        "[f*2]",
        "[f*2&t*2]",
    ]
    write_network(learned(platform))
    assert find_constraint(plan, plan.batches[0].name) == "[f*2&t*2]"
    assert {find_constraint(plan, batch.name) for batch in plan.batches[1:]} == {""}


@pytest.mark.parametrize(
    "hosts", [(), ("a", "b", "c"), ("a", "b", "c", "c"), ("a", "b", "c", "d; true")]
)
def test_a_slurm_network_with_missing_or_invalid_hosts_is_refused(place, hosts):
    write_network(replace(learned(place(SLURM)), hosts=hosts))
    with pytest.raises(UserError, match=r"here-.*yaml.*hosts"):
        place(SLURM)


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
