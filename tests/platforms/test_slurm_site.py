"""Partitions of Slurm as files, from the outputs of five sites' commands, as those tools print
them."""

import os
import shutil
from contextlib import chdir

import pytest
import yaml

from commodel.api import projects
from commodel.errors import UserError
from commodel.plan.config import load_experiment, load_platform
from commodel.platforms.slurm_site import (
    read_site,
    write_experiment,
    write_platform,
    write_profile,
)
from commodel.platforms.tools import ROOT
from tests.cli.running import run
from tests.platforms.slurm_commands import (
    DATABASE,
    NO_ACCOUNTING,
    PMI2_AND_PMIX,
    PMIX,
    install_commands,
    write_node,
    write_partition,
)

NO_TOPOLOGY = ("", "scontrol: error: No topology information available")


def make_site(
    nodes, partitions, accounts=None, config=DATABASE, plugins=PMI2_AND_PMIX, topology=""
):
    """Return a function that answers as the commands of a site. Without `accounts`, sacctmgr
    fails."""
    answers = {
        "partition": ("\n".join(partitions) + "\n", ""),
        "node": ("\n".join(nodes) + "\n", ""),
        "config": (config, ""),
        "topology": (topology, "") if topology else NO_TOPOLOGY,
    }

    def ask(program, *arguments):
        if program == "scontrol":
            return answers[arguments[1]]
        if program == "srun":
            return plugins, ""
        assert arguments[-2] == "user=me"
        if accounts is None:
            return "", "sacctmgr: error: Unable to contact slurmdbd"
        return accounts, ""

    return ask


HYPER_THREADS = make_site(
    [write_node(f"nid{n:06}", "standard,debug,hidden", 128, threads=2) for n in range(8)],
    [
        write_partition("standard", "YES", most="4"),
        write_partition("debug", limit="00:20:00"),
        write_partition("hidden"),
    ],
    config=NO_ACCOUNTING,
    topology="SwitchName=s0 Level=0 LinkSpeed=1 Nodes=nid[000000-000003]\n"
    "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=nid[000004-000007]\n",
)
GPUS = make_site(
    [write_node(f"g{n}", "gpu", 64, gres="gpu:a100:4(S:0-1)") for n in range(3)],
    [write_partition("gpu", "YES", share="EXCLUSIVE")],
    accounts="astro|\nbio|gpu\nother|cpu\n",
    plugins=PMIX,
)
TWO_TYPES = make_site(
    [
        *(write_node(f"h{n}", "main", 32, features="haswell,rack1") for n in range(3)),
        *(write_node(f"k{n}", "main", 68, features="KNL,rack1") for n in range(5)),
    ],
    [write_partition("main", "YES", most="7")],
    accounts="m1234|\n",
)
NO_FEATURES = make_site(
    [
        *(write_node(f"a{n}", "all", 16) for n in range(6)),
        *(write_node(f"b{n}", "all", 24) for n in range(2)),
    ],
    [write_partition("all")],
)
MANY_DOWN = make_site(
    [
        *(write_node(f"c{n}", "Batch_1", 2, state="ALLOCATED") for n in range(2)),
        write_node("c2", "Batch_1", 2, state="DOWN*+DRAIN"),
        write_node("c3", "Batch_1", 2, state="IDLE+DRAIN"),
    ],
    [write_partition("Batch_1")],
    accounts="",
)
FEW_GPUS = make_site(
    [
        *(write_node(f"c{n}", "main", 32, features="plain") for n in range(3)),
        *(write_node(f"g{n}", "main", 32, features="cards", gres="gpu:2") for n in range(2)),
    ],
    [write_partition("main")],
)
SITES = {
    "few-gpus": FEW_GPUS,
    "hyper-threads": HYPER_THREADS,
    "gpus": GPUS,
    "types": TWO_TYPES,
    "no-features": NO_FEATURES,
    "down": MANY_DOWN,
}
OPEN_MPI_5 = "Open MPI v5.0.3"


def read(ask, partition="", mpi="MPICH 4.2.1"):
    return read_site(partition, "me", mpi, ask)


def read_profile(site):
    template = (ROOT / "profiles/slurm/config.yaml").read_text()
    return yaml.safe_load(write_profile(site, template))


@pytest.mark.parametrize("name", SITES)
def test_the_files_of_every_site_load(name, tmp_path):
    site = read(SITES[name])
    platform = tmp_path / "params/platforms" / f"{site.name}.yaml"
    experiment = tmp_path / "params/experiments" / f"{site.name}.yaml"
    for path in (platform, experiment):
        path.parent.mkdir(parents=True)
    platform.write_text(write_platform(site))
    template = (ROOT / "params/experiments/cluster.yaml").read_text()
    text = write_experiment(site.name, site.nodes, site.fewest_cores, template)
    experiment.write_text(text)
    loaded = load_platform(platform)
    assert (loaded.nodes, loaded.cores) == (site.nodes, site.cores)
    assert loaded.slurm_section.mpi == site.mpi
    with chdir(tmp_path):
        assert load_experiment(experiment)
        assert "node-hours" in run(f"plan {site.name}").stdout
    assert read_profile(site)["default-resources"]["slurm_partition"] == site.partition


def test_hyper_threads_are_no_cores_and_a_job_has_at_most_as_many_nodes_as_allowed():
    site = read(HYPER_THREADS)
    assert (site.partition, site.nodes, site.cores) == ("standard", 4, 128)
    text = write_platform(site)
    assert "2 × 64 cores, 2 threads a core (scontrol show node)" in text
    assert "a job may have 4" in text
    assert "Slurm names 2 switches" in text
    assert read_profile(site)["slurm-patient-no-account"] is True
    assert read(HYPER_THREADS, "debug").nodes == 8


def test_accounts_are_those_of_the_partition_and_gpus_are_named():
    site = read(GPUS, mpi=OPEN_MPI_5)
    assert site.mpi == "pmix"
    assert "GPUs gpu:a100:4" in write_platform(site)
    assert "\n  gpus: 4  # of a node" in write_platform(site)
    assert "gpus:" not in write_platform(read(HYPER_THREADS))
    assert "\n  gpus:  # of a node of each type" in write_platform(read(FEW_GPUS))
    assert "# Not learned: account: you have astro, bio; the first is written" in write_platform(
        site
    )
    profile = read_profile(site)
    assert profile["default-resources"]["slurm_account"] == "astro"
    assert "slurm-patient-no-account" not in profile
    text = write_profile(site, "jobs: 1\n")
    assert "gives whole nodes to a job" in text


def test_mpich_where_slurm_offers_no_pmi2_gets_pmix():
    assert read(GPUS).mpi == "pmix"
    assert read(TWO_TYPES).mpi == "pmi2"
    assert read(TWO_TYPES, mpi="Open MPI v4.1.4").mpi == "pmix"
    assert "found no mpiexec on PATH" in write_platform(read(TWO_TYPES, mpi=""))


def test_types_have_the_features_that_no_other_type_has(tmp_path):
    site = read(TWO_TYPES)
    path = tmp_path / "main.yaml"
    path.write_text(write_platform(site))
    platform = load_platform(path)
    assert platform.types == {"knl": 5, "haswell": 2}
    assert platform.fewer_cores == {"haswell": 32}
    assert platform.slurm_section.features == {"knl": "KNL", "haswell": "haswell"}


def test_types_without_features_of_their_own_are_named_and_the_most_frequent_is_used():
    site = read(NO_FEATURES)
    assert (site.nodes, site.cores) == (6, 16)
    text = write_platform(site)
    assert "6 of 2 × 8 cores; 2 of 2 × 12 cores" in text
    assert "account: sacctmgr: error: Unable to contact slurmdbd" in text


def test_nodes_that_get_no_jobs_do_not_count():
    site = read(MANY_DOWN)
    assert (site.nodes, site.name) == (2, "batch-1")
    assert "2 more are down or drained" in write_platform(site)
    assert "sacctmgr shows none for you" in write_platform(site)


# as Slurm's commands print on a machine that belongs to no cluster, or while the controller is away
WITHOUT_CONFIGURATION = (
    "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host; "
    "scontrol: error: fetch_config: DNS SRV lookup failed; "
    "scontrol: error: _establish_config_source: failed to fetch config; "
    "scontrol: fatal: Could not establish a configuration source"
)
AWAY = "Unable to contact slurm controller (connect failure)"


@pytest.mark.parametrize(
    ("ask", "partition", "message"),
    [
        (
            TWO_TYPES,
            "mian",
            "found partition 'mian', which Slurm does not have; did you mean 'main'?",
        ),
        (
            make_site([], [write_partition("a"), write_partition("b")]),
            "",
            "wanted --slurm with one of: a, b",
        ),
        (make_site([], [write_partition("a")]), "", "found no node of partition 'a' in use"),
        (make_site([], []), "", "found no partition"),
        (
            make_site(
                [write_node("n", "a", 2).replace("Sockets=2", "Sockets=many")],
                [write_partition("a")],
            ),
            "",
            "found Sockets='many' for n, wanted a number",
        ),
        (
            lambda *command: ("", "scontrol: No such file or directory"),
            "",
            "found no scontrol on PATH",
        ),
        (lambda *command: ("", "Unknown host"), "", "scontrol show partition: Unknown host"),
        (
            lambda *command: ("", WITHOUT_CONFIGURATION),
            "",
            (
                "scontrol show partition: found no configuration of Slurm on this machine (slurm.conf), "
                "wanted a login node of the cluster; SLURM_CONF names a file elsewhere"
            ),
        ),
        (
            lambda *command: ("", "slurm_load_partitions error: " + AWAY),
            "",
            (
                "Slurm's controller does not answer: slurm_load_partitions error: Unable to contact slurm "
                "controller (connect failure). Look: scontrol ping"
            ),
        ),
    ],
)
def test_what_is_wrong_is_one_line(ask, partition, message):
    with pytest.raises(UserError) as caught:
        read(ask, partition)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_edited_file_is_kept_and_shown_with_its_difference(tmp_path, monkeypatch):
    commands = tmp_path / "bin"
    install_commands(commands, "main", nodes=4)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    project = tmp_path / "own"
    assert "params/platforms/main.yaml: written" in run(f"init {project} --slurm").stdout
    assert "params/platforms/main.yaml: unchanged" in run(f"init {project} --slurm main").stdout
    # Slurm has other nodes now: an unedited file is written again
    install_commands(commands, "main", nodes=3)
    assert "params/platforms/main.yaml: written" in run(f"init {project} --slurm").stdout
    platform = project / "params/platforms/main.yaml"
    assert "nodes: 3 " in platform.read_text()
    edited = platform.read_text().replace("mpi: pmi2", "mpi: pmix")
    platform.write_text(edited)
    shown = run(f"init {project} --slurm").stdout
    assert "main.yaml: edited, kept; what is found now:" in shown
    assert "-  mpi: pmix" in shown
    assert "+  mpi: pmi2" in shown
    assert platform.read_text() == edited
    with chdir(project):
        assert "node-hours" in run("plan cluster").stdout
        shown = run("init . --slurm").stdout
        assert "  cd " not in shown
        assert shown.endswith(
            "try\n  commodel doctor --slurm\n  commodel plan cluster\n"
            "  commodel run cluster --profile slurm\n"
        )


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone of commodel with the files that `init` writes over, on a machine with Slurm."""
    install_commands(tmp_path / "bin", "main", nodes=2)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    folder = tmp_path / "clone"
    for name in projects.COPIED_FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    monkeypatch.setattr(projects, "ROOT", folder)
    return folder


def test_in_the_clone_the_schemas_have_relative_paths(clone):
    """A path of this machine would be committed with the file."""
    assert "profiles/slurm/config.yaml: written" in run(f"init {clone} --slurm").stdout
    for name in ("platforms/main", "experiments/cluster"):
        text = (clone / f"params/{name}.yaml").read_text()
        assert "$schema=../../workflow/schemas/" in text


def test_in_the_clone_a_second_init_writes_the_same_and_keeps_what_was_edited(clone):
    run(f"init {clone} --slurm")
    written = {name: (clone / name).read_text() for name in projects.SHIPPED}
    again = run(f"init {clone} --slurm").stdout
    assert again.count(": unchanged") == 3
    assert {name: (clone / name).read_text() for name in projects.SHIPPED} == written
    profile = clone / "profiles/slurm/config.yaml"
    edited = profile.read_text().replace("jobs: 50", "jobs: 5")
    profile.write_text(edited)
    assert "config.yaml: edited, kept\n" in run(f"init {clone} --slurm").stdout
    edited = edited.replace("slurm_partition: main", "slurm_partition: big")
    profile.write_text(edited)
    shown = run(f"init {clone} --slurm").stdout
    assert "config.yaml: edited, kept; what is found now:" in shown
    assert "-  slurm_partition: big" in shown
    assert "jobs: " not in shown
    assert profile.read_text() == edited


def test_a_fresh_clone_that_was_edited_before_is_kept(clone):
    profile = clone / "profiles/slurm/config.yaml"
    edited = profile.read_text().replace("jobs: 50", "jobs: 5")
    profile.write_text(edited)
    assert "+  slurm_partition: main" in run(f"init {clone} --slurm").stdout
    assert profile.read_text() == edited


def test_a_project_that_exists_gets_only_what_describes_its_cluster(tmp_path, monkeypatch):
    install_commands(tmp_path / "bin", "main", nodes=1)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    platforms = tmp_path / "own/params/platforms"
    platforms.mkdir(parents=True)
    (platforms / "local.yaml").write_text("mine")
    run(f"init {tmp_path}/own --slurm")
    written = {
        str(path.relative_to(tmp_path / "own")) for path in (tmp_path / "own").rglob("*.yaml")
    }
    assert written == {
        "params/platforms/local.yaml",
        "params/platforms/main.yaml",
        "params/experiments/cluster.yaml",
        "profiles/slurm/config.yaml",
    }
