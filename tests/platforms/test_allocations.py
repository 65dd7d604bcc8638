"""The hosts of a job, from files and commands as schedulers write them."""

import json
import os
import stat
from contextlib import chdir

import pytest

import commodel
from commodel.errors import UserError
from commodel.plan.config import load_platform
from commodel.platforms.allocations import find_allocation
from commodel.platforms.build import find_starter
from commodel.platforms.launchers import LAUNCHERS
from tests.cli.running import refused, run

# PBS Pro with `-l select=2:ncpus=4:mpiprocs=2`, and Torque with `-l nodes=2:ppn=2`: a line a slot
PBS = "r1i0n3.ib0.cluster\nr1i0n3.ib0.cluster\nr1i0n7.ib0.cluster\nr1i0n7.ib0.cluster\n"
LSF = "compute-02\ncompute-02\ncompute-02\ncompute-01\ncompute-01\ncompute-01\n"
# Grid Engine: host, slots, queue, and processors, which are seldom known
GRID_ENGINE = """\
node07.grid.example.org 8 all.q@node07.grid.example.org UNDEFINED
node02.grid.example.org 8 all.q@node02.grid.example.org <NULL>
node02.grid.example.org 4 short.q@node02.grid.example.org 0,0:0,1
"""
FILES = {
    ("PBS", "PBS_NODEFILE"): (PBS, {"r1i0n3.ib0.cluster": 2, "r1i0n7.ib0.cluster": 2}),
    ("LSF", "LSB_DJOB_HOSTFILE"): (LSF, {"compute-02": 3, "compute-01": 3}),
    ("Grid Engine", "PE_HOSTFILE"): (
        GRID_ENGINE,
        {"node07.grid.example.org": 8, "node02.grid.example.org": 12},
    ),
}


@pytest.mark.parametrize(("scheduler", "variable"), FILES)
def test_each_host_of_a_file_is_listed_once_with_its_slots(tmp_path, scheduler, variable):
    text, slots = FILES[scheduler, variable]
    (tmp_path / "file").write_text(text)
    allocation = find_allocation({variable: str(tmp_path / "file")})
    assert (allocation.scheduler, allocation.source) == (scheduler, f"${variable}")
    assert dict(allocation.slots) == slots
    assert allocation.hosts == tuple(slots)


def test_hosts_in_variables_are_read():
    counts = find_allocation({"LSB_MCPU_HOSTS": "hostA 4 hostB 12"})
    assert dict(counts.slots) == {"hostA": 4, "hostB": 12}
    assert find_allocation({"SLURM_JOB_NODELIST": "n[01-02],x7"}).hosts == ("n01", "n02", "x7")
    assert find_allocation({"HOME": "/root"}) is None


def write_flux(folder, monkeypatch, script):
    path = folder / "flux"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize("variable", ["FLUX_JOB_ID", "FLUX_URI"])
def test_flux_is_asked_for_its_hosts_also_inside_a_job_of_slurm(tmp_path, monkeypatch, variable):
    question = "hostlist --expand local"
    write_flux(tmp_path, monkeypatch, f'[ "$*" = "{question}" ] && echo corona1 corona2')
    allocation = find_allocation({variable: "x", "SLURM_JOB_NODELIST": "corona[1-4]"})
    assert (allocation.scheduler, allocation.hosts) == ("Flux", ("corona1", "corona2"))


def test_a_flux_that_fails_is_one_line(tmp_path, monkeypatch):
    write_flux(tmp_path, monkeypatch, "echo 'flux-hostlist: ERROR: no broker' >&2; exit 1")
    with pytest.raises(UserError, match=r"flux hostlist local: found no hosts: .*no broker"):
        find_allocation({"FLUX_URI": "local:///run/flux"})


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("PBS_NODEFILE", "", "PBS_NODEFILE: found no host, wanted those of a job of PBS"),
        ("PBS_NODEFILE", "a;rm\n", r"PBS_NODEFILE: found 'a;rm', wanted the name of a host"),
        ("PE_HOSTFILE", "node1\n", "PE_HOSTFILE: found 'node1', wanted a host and its number"),
        ("PE_HOSTFILE", "node1 many q\n", "PE_HOSTFILE: found 'node1 many q', wanted a host"),
    ],
)
def test_a_file_of_another_form_is_one_line(tmp_path, variable, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(UserError, match=message):
        find_allocation({variable: str(tmp_path / "file")})


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(UserError, match="gone"):
        find_allocation({"PBS_NODEFILE": str(tmp_path / "gone")})


EXPERIMENT = """
platform: job
models: [hockney]
library: false
probe_bytes: [1, 1KiB]
measure: {precision: 50%, min_samples: 2, max_samples: 4, seconds: 0.1, passes: 1, warmup: 0}
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}
"""


@pytest.fixture
def project(tmp_path):
    """A project with a platform that names no hosts."""
    for kind, name, text in (
        ("platforms", "job", "launcher: hosts\nnodes: 2\ncores: 2\nhosts: {mpi: mpich}\n"),
        ("experiments", "mine", EXPERIMENT),
    ):
        path = tmp_path / "params" / kind / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    with chdir(tmp_path):
        yield tmp_path


def test_a_platform_without_hosts_is_planned_anywhere_and_run_in_a_job(project, monkeypatch):
    assert "1 point" in run("plan mine").stdout
    message = refused("run mine")
    assert (
        "platform 'job': takes its hosts from an allocation, and this process is in none" in message
    )
    assert "$PBS_NODEFILE" in message
    (project / "nodes").write_text("n1\nn1\n")
    monkeypatch.setenv("PBS_NODEFILE", str(project / "nodes"))
    message = refused("run mine")
    assert "platform 'job': found 1 host of PBS ($PBS_NODEFILE), wanted 2" in message


# what ssh is elsewhere: each host is a name of this machine
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
SLURMD_NODENAME=$host exec sh -c "$*"
"""


def test_a_job_measures_on_its_hosts(project, monkeypatch):
    (project / "agent").write_text(AGENT)
    (project / "agent").chmod(0o755)
    (project / "hosts").write_text("n7 2 q@n7 UNDEFINED\nn2 2 q@n2 UNDEFINED\nn3 2 q@n3 <NULL>\n")
    monkeypatch.setenv("COMMODEL_AGENT", "./agent")
    monkeypatch.setenv("PE_HOSTFILE", str(project / "hosts"))
    monkeypatch.setenv("MPIR_CVAR_NOLOCAL", "1")
    run("plan mine --write")
    batch = commodel.plan_("mine").batches[0]["batch"]
    run(f"measure --in results/mine --batch {batch} -q")
    recorded = json.loads((project / f"results/mine/raw/{batch}/provenance.json").read_text())
    assert recorded["nodes"] == ["n7", "n2"]
    hosts = [
        json.loads(path.read_text())["hosts"]
        for path in (project / f"results/mine/raw/{batch}").glob("*r-*.json")
    ]
    assert hosts
    assert {name for names in hosts for name in names} == {"n7", "n2"}


def test_hosts_of_a_survey_come_first_and_others_are_refused(project, monkeypatch):
    platform = load_platform(project / "params/platforms/job.yaml")
    (project / "nodes").write_text("a\nb\nb\nc\n")
    monkeypatch.setenv("PBS_NODEFILE", str(project / "nodes"))
    starter = find_starter("mpi", ("mpiexec",))
    names = LAUNCHERS["hosts"].names
    assert names(platform, starter, 2) == ("a", "b")
    assert names(platform, starter, 2, ("c", "a")) == ("c", "a")
    assert names(platform, starter, 3, ("x", "c")) == ("c", "a", "b")
