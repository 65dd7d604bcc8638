"""Descriptions of this machine, of the allocation of a job, and of hosts that ssh reaches."""

import os
from contextlib import chdir

import pytest

import commodel
from commodel.plan.config import load_platform
from commodel.platforms.cores import count_processors
from tests.cli.running import refused, run
from tests.platforms.slurm_commands import (
    PMI2_AND_PMIX,
    write_command,
    write_node,
    write_script,
)


def write_processors(folder, threads_of_core, sockets):
    """Write /sys files of cores with hyper-threads, numbered as Linux does: first all cores."""
    cores = len(threads_of_core)
    for core in range(cores):
        for number in threads_of_core[core]:
            topology = folder / f"cpu{number}" / "topology"
            topology.mkdir(parents=True)
            siblings = ",".join(map(str, threads_of_core[core]))
            (topology / "thread_siblings_list").write_text(f"{siblings}\n")
            (topology / "physical_package_id").write_text(f"{core * sockets // cores}\n")


def test_hyper_threads_are_no_cores_and_only_usable_processors_count(tmp_path):
    write_processors(tmp_path, [(core, core + 8) for core in range(8)], sockets=2)
    counts = count_processors(tmp_path, range(16))
    assert (counts.cores, counts.sockets, counts.processors) == (8, 2, 16)
    assert counts.text == "2 sockets of 4 cores, 2 threads a core"
    assert count_processors(tmp_path, [0, 1, 8]).text == "1 socket of 2 cores"
    # a kernel that says nothing, as in some containers
    assert count_processors(tmp_path / "none", range(4)).text == "1 socket of 4 cores"


@pytest.fixture
def outside(monkeypatch):
    """This process is in no job."""
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "PBS_NODEFILE", "PE_HOSTFILE"):
        monkeypatch.delenv(name, raising=False)


def test_this_machine_is_described_and_its_experiment_can_be_planned(tmp_path, outside):
    text = run(f"init {tmp_path}/own --here").stdout
    counts = count_processors()
    assert f"this machine: {counts.text}; MPICH" in text
    assert "commodel run here\n" in text
    platform = tmp_path / "own/params/platforms/here.yaml"
    loaded = load_platform(platform)
    assert (loaded.launcher, loaded.nodes, loaded.cores) == ("local", 1, counts.cores)
    assert (
        f"cores: {counts.cores}  # {counts.text} (/sys/devices/system/cpu)" in platform.read_text()
    )
    with chdir(tmp_path / "own"):
        assert "here: 30 points" in run("plan here").stdout
        again = run("init . --here").stdout
        assert "params/platforms/here.yaml: unchanged" in again
        platform.write_text(platform.read_text().replace("title: this", "title: my"))
        kept = run("init . --here").stdout
        assert "here.yaml: edited, kept; what is found now:" in kept
        assert "+title: this machine" in kept


def test_inside_a_job_its_hosts_are_described_without_their_names(tmp_path, outside, monkeypatch):
    (tmp_path / "hosts").write_text("".join(f"n{n} 16 all.q@n{n} UNDEFINED\n" for n in range(4)))
    monkeypatch.setenv("PE_HOSTFILE", str(tmp_path / "hosts"))
    text = run(f"init {tmp_path}/own --here").stdout
    assert "4 hosts of this Grid Engine job, 16 ranks on each at most" in text
    path = tmp_path / "own/params/platforms/here.yaml"
    loaded = load_platform(path)
    assert (loaded.launcher, loaded.nodes, loaded.cores) == ("hosts", 4, 16)
    assert loaded.hosts_section.names == ()
    with chdir(tmp_path / "own"):
        assert "node-hours" in run("plan here").stdout


def test_inside_an_allocation_of_slurm_srun_starts_the_ranks(tmp_path, outside, monkeypatch):
    nodes = "\n".join(write_node(f"n{n}", "main", cores) for n, cores in enumerate((8, 16)))
    write_command(tmp_path, "scontrol", {"show node --oneliner n0,n1": nodes})
    write_command(tmp_path, "srun", {"mpi=list": PMI2_AND_PMIX})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-1]")
    text = run(f"init {tmp_path}/own --here").stdout
    assert "2 nodes of this Slurm job: 2 × 4 cores; srun --mpi=pmi2" in text
    loaded = load_platform(tmp_path / "own/params/platforms/here.yaml")
    assert (loaded.launcher, loaded.nodes, loaded.cores) == ("slurm", 2, 8)
    assert text.endswith("  commodel run here\n")


# b is off, c sees another file system and has another MPI
SSH = """#!/bin/sh
host=$1
shift
case $host in
  b) echo 'ssh: connect to host b port 22: No route to host' >&2; exit 255;;
  c) printf '4\\n8\\n2\\napart\\nmpirun (Open MPI) 4.1.4\\n';;
  *) exec sh -c "$*";;
esac
"""


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    write_script(folder, "fake-ssh", SSH)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("COMMODEL_AGENT", "fake-ssh")


def test_hosts_that_ssh_reaches_become_a_platform(tmp_path, ssh):
    lines = []
    project = commodel.init(tmp_path / "own", hosts="a,b,c", progress=lines.append)
    counts = count_processors()
    assert lines == ["3 hosts tried by fake-ssh"]
    assert "a: " in project.details[0]
    assert project.details[1] == "b: not reached: ssh: connect to host b port 22: No route to host"
    assert project.details[2] == (
        "c: 2 sockets of 2 cores, 2 threads a core; does not see this folder, so nothing can start "
        "there; its PATH has Open MPI, wanted MPICH as here"
    )
    path = tmp_path / "own/params/platforms/hosts.yaml"
    loaded = load_platform(path)
    assert (loaded.launcher, loaded.nodes) == ("hosts", 2)
    assert loaded.hosts_section.names == ("a", "c")
    assert loaded.hosts_section.mpi == "mpich"
    assert loaded.cores == min(counts.cores, 4)
    text = path.read_text()
    assert "# b: not reached: ssh" in text
    assert "# c: 2 sockets" in text
    assert not list(tmp_path.glob("**/.commodel-*"))
    assert "commodel run hosts" in project.text()
    with chdir(tmp_path / "own"):
        assert "node-hours" in run("plan hosts").stdout


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("b", "found none of 1 host by fake-ssh; b: not reached: ssh: connect to host b"),
        ("a,a", "--hosts: found host 'a' twice"),
        ("a,-oProxyCommand=x", "--hosts: found '-oProxyCommand=x', wanted names such as a1,a2"),
        (",", "--hosts: found no host, wanted names"),
    ],
)
def test_hosts_that_cannot_be_used_are_one_line(tmp_path, ssh, names, message):
    assert message in refused(f"init {tmp_path}/own --hosts={names}")
    assert not (tmp_path / "own").exists()


def test_two_places_are_refused(tmp_path):
    message = refused(f"init {tmp_path}/own --here --hosts a")
    assert "found --here and --hosts, wanted one of them" in message
