"""Launchers are pure functions: they return the argv of a job, so no cluster is needed."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.plan.config import load_platform
from commodel.platforms.launchers import LAUNCHERS, MPI_NAMES, Job
from commodel.platforms.platform import SECTIONS
from tests.configfiles import NETWORK

PLATFORMS = {
    "local": "launcher: local\nnodes: 1\ncores: 8\n",
    "simgrid": "launcher: simgrid\nnodes: 4\ncores: 2\nsimgrid: {file: net.xml, config: {smpi/os: 0:1e-6:0}}\n",
    "slurm": "launcher: slurm\nnodes: 4\ncores: 2\nslurm: {mpi: pmix}\n",
    "hosts": "launcher: hosts\nnodes: 2\ncores: 2\nhosts: {names: [a, b]}\n",
}


@pytest.fixture
def job(tmp_path):
    def make(name, nodes=(0, 0, 1, 1), text=None, names=None):
        (tmp_path / "net.xml").write_text(NETWORK)
        path = tmp_path / f"{name}.yaml"
        path.write_text(text or PLATFORMS[name])
        arguments = ("--out", "a b;c")
        platform = load_platform(path)
        known = platform.node_names or ("n0", "n1", "n2", "n3")
        return Job(
            platform,
            "/bin/start",
            "/bin/player",
            arguments,
            nodes,
            Path("/tmp/hosts"),
            names or known,
        )

    return make


def test_every_launcher_is_known_here():
    assert set(LAUNCHERS) == set(PLATFORMS) == {"local", *SECTIONS}


@pytest.mark.parametrize("name", PLATFORMS)
def test_argv_is_a_list_that_ends_with_the_command(name, job):
    argv = LAUNCHERS[name].argv(job(name))
    assert "/bin/start" in argv[:3]
    assert argv[-3:] == ["/bin/player", "--out", "a b;c"]  # one argument, whatever is in it
    assert all(isinstance(part, str) for part in argv)
    assert "4" in argv


def test_local(job):
    assert LAUNCHERS["local"].argv(job("local"))[:3] == ["/bin/start", "-n", "4"]


def test_launchers_permit_open_mpi_as_root_only_for_the_root_user():
    for name in ("local", "hosts"):
        root, other = (LAUNCHERS[name].settings(user) for user in (0, 1000))
        assert root.items() - other.items() == {
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        }
        assert not any("ROOT" in key for key in other)
    assert not any("ROOT" in key for key in LAUNCHERS["slurm"].settings(0))


def test_simgrid(job):
    launched_job = job("simgrid", nodes=(0, 2, 1))
    argv = LAUNCHERS["simgrid"].argv(launched_job)
    assert "--cfg=smpi/os:0:1e-6:0" in argv
    assert "--cfg=smpi/simulate-computation:no" in argv
    assert argv[:2] == ["env", "TMPDIR=."]
    assert launched_job.hosts == "node-0\nnode-2\nnode-1\n"


def test_slurm_places_every_rank_and_always_gives_counts(job):
    launched_job = job("slurm", nodes=(1, 0, 3, 1))
    argv = LAUNCHERS["slurm"].argv(launched_job)
    assert argv[:3] == ["env", "SLURM_HOSTFILE=/tmp/hosts", "/bin/start"]
    assert "-N 3 -n 4 --distribution=arbitrary --kill-on-bad-exit=1" in " ".join(argv)
    assert "--mpi=pmix" in argv
    assert launched_job.hosts == "n1\nn0\nn3\nn1\n"


def test_slurm_gives_gpus_to_processes_that_drive_them(job):
    text = PLATFORMS["slurm"].replace("pmix", "pmix, gpus: 2")
    launched_job = job("slurm", nodes=(0, 0), text=text)
    drives = replace(launched_job, cores_per_rank=(1, 1), gpus=(-1, 0))
    assert "--gres=gpu:2" in LAUNCHERS["slurm"].argv(drives)
    assert "--gres=gpu:2" not in LAUNCHERS["slurm"].argv(launched_job)


def test_a_step_has_all_gpus_of_nodes_with_different_numbers(job):
    types = "types: {fat: 2, thin: 2}\n"
    text = PLATFORMS["slurm"] + types
    text = text.replace("pmix", "pmix, features: {fat: f, thin: t}, gpus: {fat: 4, thin: 1}")
    drives = replace(job("slurm", nodes=(1, 1, 3), text=text), gpus=(0, 1, 0))
    assert "--gpus=5" in LAUNCHERS["slurm"].argv(drives)
    equal = replace(job("slurm", nodes=(0, 1), text=text), gpus=(0, 1))
    assert "--gres=gpu:4" in LAUNCHERS["slurm"].argv(equal)


def test_the_placement_file_names_known_hosts(job):
    assert job("slurm", nodes=(1, 0, 1)).placement == "1 n1\n0 n0\n1 n1\n"
    unknown = replace(job("local", nodes=(0, 0)), names=())
    assert unknown.placement == "0\n0\n"
    assert job("hosts", nodes=(1, 0), names=("10.0.0.1", "node-b")).placement == "1 node-b\n0\n"


def test_the_file_of_cores_has_each_process_with_its_node(job):
    launched_job = replace(job("slurm", nodes=(1, 0, 1, 1)), cores_per_rank=(6, 4, 5, 1))
    assert launched_job.cores == "1 6\n0 4\n1 5\n1 1\n"
    drives = replace(launched_job, cores_per_rank=(6, 4, 5, 0), gpus=(-1, 0, -1, 1))
    assert drives.cores == "1 6\n0 4 gpu:0\n1 5\n1 0 gpu:1\n"


@pytest.mark.parametrize("name", ["hosts", "simgrid"])
def test_hosts_and_simgrid_launchers_take_node_names_from_the_platform(name, job):
    platform = job(name).platform
    assert (
        LAUNCHERS[name].names(platform, "/bin/start", platform.nodes) == platform.node_names != ()
    )


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_hosts_put_every_rank_where_the_plan_states(job, mpi, monkeypatch, tmp_path):
    monkeypatch.delenv("COMMODEL_AGENT", raising=False)
    text = PLATFORMS["hosts"].replace("b]", f"b], mpi: {mpi}")
    launched_job = job("hosts", nodes=(0, 1, 0, 1), text=text)
    assert launched_job.hosts == "a\nb\na\nb\n"
    plain = LAUNCHERS["hosts"].argv(launched_job)
    assert "/tmp/hosts" in plain
    (tmp_path / "agent").write_text("#!/bin/sh\n")
    (tmp_path / "agent").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMODEL_AGENT", "./agent")  # programs start in another folder
    assert set(LAUNCHERS["hosts"].argv(job("hosts", text=text))) >= {
        *plain,
        str(tmp_path / "agent"),
    }


def test_hosts_are_refused_where_the_starter_is_of_another_mpi_than_the_platform_states(
    job, tmp_path
):
    starter = tmp_path / "mpirun"
    starter.write_text("#!/bin/sh\necho 'HYDRA build details:'\n")
    starter.chmod(0o755)
    platforms = {
        mpi: job("hosts", text=PLATFORMS["hosts"].replace("b]", f"b], mpi: {mpi}")).platform
        for mpi in MPI_NAMES
    }
    assert LAUNCHERS["hosts"].names(platforms["mpich"], str(starter), 2) == ("a", "b")
    with pytest.raises(
        UserError,
        match=r"hosts.yaml:4: hosts.mpi: found 'openmpi', wanted 'mpich', the MPI of .*mpirun",
    ):
        LAUNCHERS["hosts"].names(platforms["openmpi"], str(starter), 2)


def test_the_hosts_launcher_removes_slurmd_nodename_from_the_environment(job, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n0")
    argv = LAUNCHERS["hosts"].argv(job("hosts"))
    command = [*argv[: argv.index("/bin/start")], "printenv", "SLURMD_NODENAME"]
    assert subprocess.run(command, capture_output=True, check=False).stdout == b""


@pytest.mark.parametrize("named", ["ssh -p 2", "ssh:rsh", "a,b", "-x", "a;b"])
def test_an_agent_is_one_word(job, named, monkeypatch):
    monkeypatch.setenv("COMMODEL_AGENT", named)
    with pytest.raises(UserError, match=r"COMMODEL_AGENT: found .* wanted a program"):
        LAUNCHERS["hosts"].argv(job("hosts"))


def test_an_agent_is_there(job, monkeypatch):
    monkeypatch.setenv("COMMODEL_AGENT", "no-such-agent")
    with pytest.raises(UserError, match="COMMODEL_AGENT: found no program 'no-such-agent'"):
        LAUNCHERS["hosts"].argv(job("hosts"))
