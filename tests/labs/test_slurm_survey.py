"""A survey of the network under Slurm: later jobs run on its hosts, in its order; missing hosts are
reported."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from commodel.plan.surveys import find_network_file
from commodel.platforms.slurm import find_node_levels
from tests.labs.slurm_lab import HERE, make_project, running_slurm
from tests.labs.test_slurm_campaign import MEASURE
from tests.waiting import until

pytestmark = pytest.mark.lab

EXPERIMENT = f"""
platform: lab
models: [hockney]
library: false
probe_bytes: [1, 8]
{MEASURE}
matrix:
  - axes: {{operation: bcast, algorithm: linear, ranks: [2, 4], bytes: 8}}
    zips: {{placement: {{ranks_per_node: [1]}}}}
"""
INTERLEAVED_TOPOLOGY = (
    "SwitchName=s0 Nodes=n[0,2] LinkSpeed=100\nSwitchName=s1 Nodes=n[1,3]\nSwitchName=top "
    "Switches=s[0-1]\n"
)
SLOW_CABLE = """
ip link add br1 type bridge
ip link set br1 up
ip link add up0 type veth peer name up1
for number in 0 1; do
  ip link set up$number master br$number gso_max_segs 1 up
  tc qdisc add dev up$number root tbf rate 10mbit burst 1600 limit 1514000
done
ip link set n2 master br1
ip link set n3 master br1
"""
HOSTS = ["n0", "n1", "n2", "n3"]
REORDERED = ["n3", "n1", "n2", "n0"]


def run(project, *more):
    code, output = project.run("commodel", "run", "mine", "--profile", "slurm", *more)
    assert code == 0, output
    return output


def network_of(project):
    (path,) = (project.folder / "networks").iterdir()
    return path, yaml.safe_load(path.read_text())


def nodes_of(project, batch):
    return json.loads((project.raw(batch) / "provenance.json").read_text())["nodes"]


@pytest.fixture
def interleaved():
    """n0 and n2 are on one switch, n1 and n3 on another."""
    with running_slurm(INTERLEAVED_TOPOLOGY) as slurm:
        yield slurm


@pytest.fixture
def surveyed(interleaved, tmp_path):
    """A project with a network file, whose order of hosts differs from Slurm's."""
    project = make_project(interleaved, tmp_path)
    project.write(EXPERIMENT)
    digest = project.plan.platforms["lab"].digest
    path = find_network_file("lab", digest, project.folder)
    path.parent.mkdir()
    survey = {"digest": digest, "experiment": "first", "date": "2026-01-01", "pairs": 6}
    path.write_text(yaml.safe_dump({"platform": "lab", **survey, "hosts": REORDERED, "levels": {}}))
    return project


def test_a_survey_learns_the_hosts_and_all_jobs_run_there(interleaved, tmp_path):
    srun = str(interleaved.folder / "bin" / "srun")
    assert find_node_levels(srun, ("n0", "n1", "n2", "n3")).group_lists == {"leaf": [0, 1, 0, 1]}
    assert find_node_levels(srun, ("n3", "n1", "n0")).group_lists == {"leaf": [0, 0, 1]}
    project = make_project(interleaved, tmp_path)
    project.write(EXPERIMENT)
    project.measure()
    path, network = network_of(project)
    print(path.read_text())
    assert (network["hosts"], network["pairs"]) == (HOSTS, 6)
    assert [nodes_of(project, batch) for batch in project.plan.batches] == [
        HOSTS,
        HOSTS,
        HOSTS[:2],
        HOSTS,
    ]
    for batch in project.plan.batches:  # the switches of a job's nodes, as Slurm reports them
        about = json.loads((project.raw(batch) / "provenance.json").read_text())
        assert about["levels"] == {"leaf": [0, 1, 0, 1][: batch.nodes]}
        assert set(about["processors"]) <= {"cache", "socket"}
    _, output = project.run("commodel", "show", "network", "mine")
    print(output)
    assert re.search(r"Slurm's topology (agrees with|differs from) the measured times", output), (
        output
    )
    # all nodes are one machine: measured levels are random
    agrees = network["levels"] == {"leaf": [0, 1, 0, 1]}
    assert agrees == ("topology agrees" in output)


def test_jobs_run_on_surveyed_hosts_in_order_and_wait_until_available(surveyed):
    """The jobs use the order of hosts in the network file, which differs from Slurm's."""
    probes, two, four = surveyed.plan.batches
    slurm = surveyed.slurm
    slurm("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
    process = surveyed.start("commodel", "run", "mine", "--profile", "slurm")
    log = surveyed.folder / "results/mine/run.log"
    until(lambda: log.exists() and "waits for n3," in log.read_text(), 60)
    slurm("scontrol", "update", "nodename=n3", "state=resume")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    path, _ = network_of(surveyed)
    assert re.search(
        rf"waits for n3,.*UnavailableNodes:n3.*delete networks/{path.name}, or", output
    ), output
    assert [nodes_of(surveyed, batch) for batch in (probes, two, four)] == [
        REORDERED,
        REORDERED[:2],
        REORDERED,
    ]
    hosts_of_player = [
        json.loads(file.read_text())["hosts"] for file in surveyed.raw(two).glob("player-2r-*.json")
    ]
    assert hosts_of_player == [REORDERED[:2]]


def test_a_job_on_other_hosts_fails_and_without_the_survey_any_hosts_do(surveyed):
    _, two, _ = surveyed.plan.batches
    path, _ = network_of(surveyed)
    job = surveyed.submit(two, "--nodelist=n0,n1")
    assert surveyed.slurm.ended(job) == "FAILED"
    assert (
        f"networks/{path.name}: the job runs on n1,n0, wanted n3,n1, whose network was surveyed"
        in surveyed.log(job)
    )
    surveyed.measure(f"results/mine/raw/{two.name}/done", "survey=false")
    assert nodes_of(surveyed, two) == ["n0", "n2"]  # on one switch, which Slurm prefers


@pytest.fixture
def two_switches(tmp_path, monkeypatch):
    """n0 and n1 are hosts on one switch, n2 and n3 on another, with a slow cable between the
    switches."""
    missing = [name for name in ("ip", "tc", "nsenter", "unshare") if not shutil.which(name)]
    if missing:
        pytest.skip(f"no {', '.join(missing)} here")
    hosts, script = tmp_path / "hosts", HERE / "network.sh"
    monkeypatch.setenv("LAB_HOSTS", " ".join(HOSTS))
    subprocess.run([script, "up", hosts], check=True, timeout=60)
    try:
        switch = [
            "nsenter",
            "--target",
            (hosts / "switch.pid").read_text().strip(),
            "--net",
            "sh",
            "-ec",
        ]
        subprocess.run([*switch, SLOW_CABLE], check=True, timeout=60)
        monkeypatch.setenv("LAB_NETWORK", str(hosts))
        with running_slurm(
            "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=top Switches=s[0-1]\n"
        ) as slurm:
            yield slurm
    finally:
        subprocess.run([script, "down", hosts], check=True, timeout=60)


@pytest.mark.alone
def test_learned_levels_equal_the_topology(two_switches, tmp_path):
    project = make_project(two_switches, tmp_path)
    project.write(EXPERIMENT)
    project.measure("learn")
    stated = ["--in", "results/mine/plan.json", "--out", "results/mine/observations.csv"]
    code, output = project.run("commodel", "collect", "--unfinished", *stated)
    assert code == 0, output
    path, network = network_of(project)
    print(path.read_text())
    assert network["hosts"] == HOSTS
    assert network["levels"] == {"leaf": [0, 0, 1, 1]}
    assert project.plan.platforms["lab"].levels == {"leaf": (0, 0, 1, 1)}
    _, output = project.run("commodel", "show", "network", "mine")
    print(output)
    assert "Slurm's topology agrees with the measured times." in output


@pytest.fixture
def five_nodes(monkeypatch):
    monkeypatch.setenv("LAB_NODES", "n0 n1 n2 n3 n4")


@pytest.mark.slow
@pytest.mark.own_slurm(losses=True)
def test_on_other_hosts_the_survey_and_all_later_jobs_are_repeated(five_nodes, project):
    """A host fails during the survey. Later another one fails, and the user deletes the network
    file."""
    project.write(EXPERIMENT)
    survey = project.plan.batches[0]
    assert project.slurm.ended(project.submit(survey, "--nodelist=n0,n1,n2,n3")) == "COMPLETED"
    project.slurm("scontrol", "update", "nodename=n0", "state=drain", "reason=test")
    run(project)
    path, network = network_of(project)
    assert network["hosts"] == ["n1", "n2", "n3", "n4"]
    assert len(list(project.raw(survey).glob("*.csv.other-nodes-1"))) == len(survey.ids)
    project.slurm("scontrol", "update", "nodename=n0", "state=resume")
    project.slurm("scontrol", "update", "nodename=n4", "state=drain", "reason=test")
    path.unlink()
    run(project)
    assert network_of(project)[1]["hosts"] == HOSTS
    assert [nodes_of(project, batch) for batch in project.plan.batches] == [
        HOSTS,
        HOSTS,
        HOSTS[:2],
        HOSTS,
    ]
    assert all(
        list(project.raw(batch).glob("*.csv.other-nodes-1")) for batch in project.plan.batches[1:]
    )


@pytest.mark.slow
def test_after_a_failed_survey_the_levels_of_platform_files_are_used(project):
    """Its job is cancelled twice. `tests/workflow/test_survey.py` tests the same without Slurm."""
    project.write(EXPERIMENT)
    process, cancelled = project.start("commodel", "run", "mine", "--profile", "slurm"), set()
    while len(cancelled) < 2:
        job = until(
            lambda: next(
                (job for job in project.slurm.jobs("running") if job not in cancelled), ""
            ),
            60,
        )
        project.slurm("scancel", job)
        cancelled.add(job)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "the survey of lab failed: the levels of platform files are used instead" in output
    assert not (project.folder / "networks").exists()
    assert (project.folder / "reports/mine/mine.xlsx").exists()
