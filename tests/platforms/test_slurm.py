"""Slurm: its allocations, switches and outages, and the executor that tolerates outages. The real
Slurm is in tests/labs."""

import asyncio
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snakemake.iocontainers import ResourceList
from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from commodel.errors import UserError
from commodel.plan.config import load_platform
from commodel.platforms import slurm
from commodel.platforms.slurm import (
    end_steps,
    expand_names,
    find_node_names,
    find_refusal,
    list_wanted_features,
    make_constraint,
    order_by_type,
    parse_features,
    parse_levels,
    parse_mpi_types,
    run_slurm,
    was_refused,
)
from snakemake_executor_plugin_slurm_patient import UNLISTED, Executor
from snakemake_executor_plugin_slurm_patient.__main__ import forget_defaults

TYPED = (
    "launcher: slurm\nnodes: 5\ncores: 2\ntypes: {fat: 2, thin: 3}\nslurm: {features: {fat: "
    "bigmem, thin: std}}\n"
)
NODES = "\n".join(
    f"NodeName={name} Arch=x86_64 AvailableFeatures={features} ActiveFeatures={features} OS=Linux #1 SMP RealMemory=1"
    for name, features in [
        ("a1", "std"),
        ("a2", "std,bigmem"),
        ("b1", "bigmem"),
        ("b2", "std"),
        ("b3", "(null)"),
    ]
)


@pytest.fixture
def typed(tmp_path):
    path = tmp_path / "mine.yaml"

    def load(text=TYPED):
        path.write_text(text)
        return load_platform(path)

    return load


@pytest.mark.parametrize(
    ("nodes", "asked"),
    [(1, "[bigmem*1]"), (2, "[bigmem*2]"), (3, "[bigmem*2&std*1]"), (5, "[bigmem*2&std*3]")],
)
def test_an_allocation_holds_the_first_nodes_of_the_platform(typed, nodes, asked):
    assert make_constraint(typed(), nodes) == asked


def test_nodes_that_are_alike_need_no_constraint(typed):
    assert make_constraint(typed("launcher: slurm\nnodes: 5\ncores: 2\n"), 3) == ""
    assert make_constraint(typed("launcher: local\nnodes: 1\ncores: 2\n"), 1) == ""


def test_nodes_are_ordered_by_type_each_once(typed):
    names = ("a1", "a2", "b1", "b2", "b3")
    features = parse_features(NODES)
    assert features["a2"] == {"std", "bigmem"}
    assert order_by_type(names, features, list_wanted_features(typed(), 4)) == (
        "a2",
        "b1",
        "a1",
        "b2",
    )
    with pytest.raises(UserError, match="2 nodes with feature 'std', wanted 3"):
        order_by_type(names, features, list_wanted_features(typed(), 5))


@pytest.mark.parametrize(
    ("hosts", "names"),
    [((), ("n1", "n2")), (("n3", "n1"), ("n3", "n1")), (("n9", "n2"), ("n2", "n1"))],
    ids=["any", "in their order", "one is elsewhere"],
)
def test_surveyed_hosts_are_the_first_nodes_of_an_allocation(
    typed, command, monkeypatch, hosts, names
):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    folder = command(answers="n[1-3]").parent
    command(name="scontrol", answers="n1 n2 n3")
    command(name="srun", answers="pmi2")
    platform = typed("launcher: slurm\nnodes: 5\ncores: 2\n")
    assert find_node_names(platform, os.fspath(folder / "srun"), 2, hosts) == names


@pytest.mark.parametrize(
    "features", ["{fat: bigmem}", "{}", "{fat: a, thin: b, slim: c}", "{fat: 'a&b', thin: c}"]
)
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
def test_mpi_types_are_parsed_from_the_srun_listing(listing):
    assert parse_mpi_types(listing) == ["pmix", "none", "pmi2", "pmix_v4", "pmix_v3"]


# What Slurm 22.05 prints while slurmctld is killed, or stopped.
KILLED = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
STOPPED = "slurm_load_jobs error: Socket timed out on send/recv operation"
NO_START = (
    "srun: error: Unable to confirm allocation for job 1: Unable to contact slurm controller "
    "(connect failure)\n"
)
NO_START += "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 1\n"


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Return a function that makes a command, which fails once with each message and then prints
    its answer."""
    monkeypatch.setattr(slurm, "RETRY_INTERVAL", 0.0)

    def make(*complaints: str, name: str = "squeue", answers: str = "n[1-2]") -> Path:
        for number, text in enumerate(complaints):
            (tmp_path / f"{name}.{number}").write_text(text)
        file = tmp_path / name
        file.write_text(
            f'#!/bin/sh\nfor said in "$0".[0-9]*; do [ -e "$said" ] && cat "$said" >&2 && rm "$said" && exit 1; done\n'
            f'echo "$@" >>"$0".asked; echo "{answers}"\n'
        )
        file.chmod(0o755)
        return file

    return make


@pytest.mark.parametrize(
    ("complaints", "lines"), [((KILLED,), 1), ((STOPPED, KILLED), 1), (("something passing",), 0)]
)
def test_a_failed_slurm_query_is_repeated_until_an_answer_arrives(
    command, complaints, lines, capsys
):
    assert run_slurm(command(*complaints)) == "n[1-2]\n"
    said = capsys.readouterr().err  # once, however often it is asked
    assert said.count("the query is repeated for up to 15 minutes: ") == said.count("\n") == lines


def test_an_outage_is_waited_for_longer_than_a_refusal(command, monkeypatch):
    monkeypatch.setattr(slurm, "RETRY_SECONDS", -1.0)
    assert run_slurm(command(KILLED)) == "n[1-2]\n"
    with pytest.raises(UserError, match="Invalid job id specified"):
        run_slurm(command("slurm_load_jobs error: Invalid job id specified"))
    monkeypatch.setattr(slurm, "OUTAGE_SECONDS", -1.0)
    with pytest.raises(UserError, match="Unable to contact slurm controller"):
        run_slurm(command(KILLED))


def test_a_stop_request_ends_waiting_for_the_slurm_controller(command, monkeypatch, tmp_path):
    (tmp_path / "stop").touch()
    monkeypatch.setenv("COMMODEL_STOP_FILE", str(tmp_path / "stop"))
    with pytest.raises(SystemExit):
        run_slurm(command(KILLED))


def test_a_start_that_slurm_refused_is_known_from_others():
    assert was_refused(NO_START)
    assert was_refused(
        "srun: error: Unable to create step for job 2: Memory required by task is not available\n"
    )
    assert not was_refused("srun: error: n0: task 0: Exited with exit code 1\n")
    assert not was_refused("pingpong.c:31: connect failed\n")


def test_steps_that_the_controller_has_yet_to_hear_of_are_not_killed(command, monkeypatch):
    """If such a step were cancelled, Slurm would take its nodes out of service."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr("commodel.platforms.slurm.time.sleep", lambda seconds: None)
    file = command(answers="7.0")
    folder = file.parent
    command(name="scancel")
    file.write_text(
        '#!/bin/sh\n[ -e "$0.once" ] && echo 7.batch && exit; touch "$0.once"; echo 7.0 7.batch\n'
    )
    end_steps(os.fspath(folder / "srun"), ended=True)
    assert not (folder / "scancel.asked").exists()


def test_steps_are_looked_for_again_when_a_squeue_fails(command, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    folder = command(KILLED, answers="7.batch").parent
    end_steps(os.fspath(folder / "srun"))
    assert (folder / "squeue.asked").read_text() == "--noheader --steps --jobs=7 --format=%i\n"


THREE = """\
SwitchName=leaf0 Level=0 LinkSpeed=100 Nodes=n[0-1]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[2-3]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[4-5]
SwitchName=pod0 Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=leaf[0-1]
SwitchName=pod1 Level=1 LinkSpeed=1 Nodes=n[4-5] Switches=leaf2
SwitchName=spine Level=2 LinkSpeed=1 Nodes=n[0-5] Switches=pod[0-1]
"""


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("n[01-03],x5", "n01 n02 n03 x5"),
        ("n[8-11]", "n8 n9 n10 n11"),
        ("r[0-1]n[1,3-4]-ib", "r0n1-ib r0n3-ib r0n4-ib r1n1-ib r1n3-ib r1n4-ib"),
        ("alone.site.org", "alone.site.org"),
        ("(null)", ""),
        ("", ""),
    ],
)
def test_a_list_of_nodes_is_written_out(listed, names):
    assert expand_names(listed) == names.split()


@pytest.mark.parametrize(
    "listed",
    ["n[1-", "n]1[", "n[]", "n[3-1]", "n[0-999999999]", "r[0-9999]n[0-9999]", "a,,b", "a,"],
)
def test_a_list_that_is_none_is_refused(listed):
    with pytest.raises(UserError, match="found"):
        expand_names(listed)


def test_the_nodes_of_an_allocation_are_grouped_in_their_order():
    """The spine is no level, since all nodes are below it."""
    hierarchy = parse_levels(THREE, ["n5", "n0", "n2", "n1"])
    assert hierarchy.group_lists == {"leaf": [0, 1, 2, 1], "group": [0, 1, 1, 1]}
    assert hierarchy.distance(1, [0, 1, 2, 3]).tolist() == [3, 0, 2, 1]


def test_an_allocation_on_one_switch_is_marked():
    assert parse_levels(THREE, ["n3", "n2"]).group_lists == {"leaf": [0, 0]}


def test_a_node_on_no_switch_is_a_group_by_itself():
    assert parse_levels(THREE, ["n0", "login", "n1"]).group_lists["leaf"] == [0, 1, 0]


def test_blocks_are_leaves():
    listing = (
        "BlockName=b0 BlockIndex=0 Nodes=n[00-01] BlockSize=2\nBlockName=b1 BlockIndex=1 "
        "Nodes=n[02-03] BlockSize=2"
    )
    assert parse_levels(listing, ["n03", "n00", "n01"]).group_lists == {"leaf": [0, 1, 1]}


@pytest.mark.parametrize(
    "listing",
    [
        "SwitchName=a Level=0 Nodes=n[0-1]\nSwitchName=b Level=0 Nodes=n1",
        "SwitchName=a Level=-1 Nodes=n0",
        "SwitchName=a Level=99999999999 Nodes=n0",
        "SwitchName=a Level=0 Nodes=n[0",
    ],
)
def test_an_invalid_switch_listing_is_refused(listing):
    with pytest.raises(UserError, match="found"):
        parse_levels(listing, ["n0", "n1"])


def test_where_slurm_knows_nothing_there_are_no_levels():
    assert not parse_levels("", ["n0"]).groups


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 9), st.randoms())
def test_any_tree_of_switches_comes_back(leaves, per_leaf, first, random):
    nodes = [f"n{first + node}" for node in range(leaves * per_leaf)]
    lists = [
        f"n[{first + leaf * per_leaf}-{first + leaf * per_leaf + per_leaf - 1}]"
        for leaf in range(leaves)
    ]
    listing = "\n".join(
        f"SwitchName=s{leaf} Level=0 LinkSpeed=1 Nodes={text}" for leaf, text in enumerate(lists)
    )
    order = random.sample(range(len(nodes)), len(nodes))
    column = parse_levels(listing, [nodes[node] for node in order]).group_lists["leaf"]
    for here, beside in zip(range(len(order)), range(1, len(order)), strict=False):
        assert (column[here] == column[beside]) == (
            order[here] // per_leaf == order[beside] // per_leaf
        )


AWAY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


class Slurm:
    """A simulated Slurm: the output of squeue, the ends of jobs as reported by the base executor,
    and the results that the extended executor reports."""

    def __init__(self):
        self.listed, self.complaint, self.ends = "", "", ()
        self.succeeded, self.cancelled, self.said = [], [], []


@pytest.fixture
def cluster(monkeypatch):
    fake_slurm = Slurm()

    async def check_active_jobs(self, active_jobs):
        for job in active_jobs:
            if job.external_jobid in fake_slurm.ends:
                self.report_job_success(job)
        return
        yield  # none: as when all its questions failed

    def cancel_jobs(self, active_jobs):
        if fake_slurm.complaint:
            raise WorkflowError("Unable to cancel jobs with scancel")
        fake_slurm.cancelled += [job.external_jobid for job in active_jobs]

    def answer(program, *arguments):
        return ("", fake_slurm.complaint) if fake_slurm.complaint else (fake_slurm.listed, "")

    monkeypatch.setattr(SlurmExecutor, "__init__", lambda self, workflow, logger: None)
    monkeypatch.setattr(SlurmExecutor, "check_active_jobs", check_active_jobs)
    monkeypatch.setattr(SlurmExecutor, "cancel_jobs", cancel_jobs)
    monkeypatch.setattr(SlurmExecutor, "get_status_command", lambda self: "squeue")
    monkeypatch.setattr(SlurmExecutor, "report_job_submission", lambda *arguments: None)
    monkeypatch.setattr(
        SlurmExecutor,
        "report_job_success",
        lambda self, job: fake_slurm.succeeded.append(job.external_jobid),
    )
    monkeypatch.setattr("snakemake_executor_plugin_slurm_patient.try_slurm", answer)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    return fake_slurm


@pytest.fixture
def look(cluster):
    """Return a function that makes the executor check the active jobs once and returns the ids of
    those left."""
    executor = Executor(None, None)
    executor.logger = SimpleNamespace(warning=cluster.said.append, error=cluster.said.append)
    executor.run_uuid = "run"
    left = [SubmittedJobInfo(None, number) for number in ("1", "2", "3")]
    for job in left:
        executor.report_job_submission(job)

    async def once():
        return [job async for job in executor.check_active_jobs(left)]

    def numbers() -> list[str]:
        left[:] = asyncio.run(once())
        return [job.external_jobid for job in left]

    numbers.executor = executor
    return numbers


def test_jobs_are_submitted_in_the_order_of_their_priority(look, monkeypatch):
    """Slurm starts jobs of equal rank in the order in which they were submitted."""
    submitted = []
    monkeypatch.setattr(SlurmExecutor, "run_jobs", lambda self, jobs: submitted.extend(jobs))
    jobs = [SimpleNamespace(priority=priority) for priority in (-2, 0, -1)]
    look.executor.run_jobs(jobs)
    assert [job.priority for job in submitted] == [0, -1, -2]


JOB = "python -m snakemake --cores 2 --executor slurm-jobstep --jobs 1 --mode remote"


def test_a_job_that_starts_mpi_itself_has_one_snakemake(look, monkeypatch):
    monkeypatch.setattr(SlurmExecutor, "format_job_exec", lambda self, job: JOB)
    options = "--executor slurm-jobstep --jobs 1"
    monkeypatch.setattr(SlurmExecutor, "additional_general_args", lambda self: options)
    command = look.executor.format_job_exec(SimpleNamespace(resources={"mpi": "srun"}))
    assert command == "python -m snakemake_executor_plugin_slurm_patient --cores 2 --mode remote"
    assert look.executor.format_job_exec(SimpleNamespace(resources={})) == JOB


def test_it_leaves_srun_no_defaults_of_the_job():
    environment = {"SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/slurm.conf", "PATH": "/bin"}
    defaults = {"SLURM_NTASKS_PER_NODE": "2", "SRUN_CPUS_PER_TASK": "4", "SBATCH_MEM": "1"}
    of_the_job = environment | defaults
    forget_defaults(of_the_job)
    assert of_the_job == environment


def test_no_job_is_forgotten_in_an_outage(cluster, look):
    cluster.complaint = AWAY
    assert [look() for _ in range(5)] == [["1", "2", "3"]] * 5
    cluster.complaint, cluster.listed, cluster.ends = "", "1\n2\n3\n", ("2",)
    assert look() == ["1", "3"]
    outage_line, back = cluster.said
    assert outage_line.startswith("commodel: Slurm's controller does not answer since ")
    assert AWAY in outage_line
    assert back.startswith("commodel: Slurm's controller answers again")


def test_jobs_that_could_not_be_queried_about_are_kept(cluster, look):
    cluster.listed = "1\n2\n3_[1-4]\n"
    assert [look() for _ in range(2 * UNLISTED)][-1] == ["1", "2", "3"]
    assert cluster.succeeded == cluster.said == []


def test_the_executor_polls_soon_after_the_output_of_a_job_appears(
    cluster, look, monkeypatch, tmp_path
):
    """The base executor increases the polling interval up to three minutes."""
    now, done = [0.0], tmp_path / "done"

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 100:
            done.touch()

    executor = look.executor
    executor.handed_in = {"1": SubmittedJobInfo(SimpleNamespace(output=[str(done)]), "1")}
    executor.wait, executor._next_seconds_between_status_checks = True, 180
    monkeypatch.setattr("snakemake_executor_plugin_slurm_patient.time.monotonic", lambda: now[0])
    monkeypatch.setattr("snakemake_executor_plugin_slurm_patient.asyncio.sleep", sleep)
    looks = []
    for _ in range(14):
        asyncio.run(executor.sleep())
        looks.append(now[0])
    assert looks[0] == pytest.approx(100.5)
    assert looks[1:3] == pytest.approx([102.5, 104.5])
    assert looks[-1] - looks[-2] == 180  # it has not ended, though its output is there


FAILED = (
    "SLURM sbatch failed. The error message was '{}'.\n    sbatch call:\n        sbatch "
    "--qos=invalid account\n"
)
SUBMISSION = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"sbatch: error: invalid partition specified: nosuch\n{SUBMISSION}Invalid partition name specified",
            "invalid partition specified: nosuch; Batch job submission failed: Invalid partition name specified",
        ),
        (
            f"{SUBMISSION}User's group not permitted to use this partition",
            "Batch job submission failed: User's group not permitted to use this partition",
        ),
        (
            f"{SUBMISSION}Invalid qos specification",
            "Batch job submission failed: Invalid qos specification",
        ),
        (
            f"{SUBMISSION}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "",
        ),
        (f"{SUBMISSION}Requested node configuration is not available", ""),
        (f"{SUBMISSION}Socket timed out on send/recv operation", ""),
    ],
)
def test_refusals_that_every_job_would_meet_are_known_from_others(text, message):
    """Others concern one job, or end with time: limits of submitted jobs, nodes, the controller."""
    assert find_refusal(FAILED.format(text)) == message


@pytest.fixture
def submit(cluster, look, monkeypatch):
    """Return a function that submits a job, and the lists of jobs that reached sbatch and of
    reported errors."""
    executor, submitted, errors = look.executor, [], []
    monkeypatch.setattr(
        SlurmExecutor, "_report_job_error_threadsafe", lambda self, job, msg: errors.append(msg)
    )

    def run_job(self, job):
        submitted.append(job)
        self._report_job_error_threadsafe(
            SubmittedJobInfo(job), FAILED.format(f"{SUBMISSION}{executor.answer}")
        )

    monkeypatch.setattr(SlurmExecutor, "run_job", run_job)

    def hand_in(answer: str = "", **resources) -> None:
        executor.answer = answer
        executor.run_job(with_resources("7", **resources).job)

    return SimpleNamespace(job=hand_in, submitted=submitted, errors=errors)


def test_after_a_refusal_of_a_common_setting_no_job_is_submitted(cluster, submit):
    submit.job("Requested node configuration is not available")
    assert cluster.said == []
    for _ in range(3):
        submit.job("Invalid qos specification")
    refusal = "sbatch refuses the job: Batch job submission failed: Invalid qos specification"
    hint = "no further job is submitted; see profiles/README.md for a site's settings"
    assert cluster.said == [f"commodel: {refusal}; {hint}"]
    assert len(submit.submitted) == 2
    assert submit.errors[1:] == [f"{refusal}. "] * 3


def test_an_account_that_accounting_does_not_have_is_a_refusal(cluster, submit, monkeypatch):
    """The base executor looks for it with sacctmgr before it calls sbatch, and would print a
    traceback."""

    def get_account_arg(self, job):
        raise WorkflowError(
            "The given account mine appears to be invalid. Available accounts:\nours, theirs"
        )
        yield ""

    monkeypatch.setattr(SlurmExecutor, "get_account_arg", get_account_arg)
    submit.job(slurm_account="mine")
    (line,) = cluster.said
    assert (
        "The given account mine appears to be invalid. Available accounts: ours, theirs; no further job"
        in line
    )
    assert submit.submitted == []


def test_without_sbatch_the_executor_neither_waits_nor_submits(cluster, submit, monkeypatch):
    cluster.complaint = AWAY
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for _ in range(2):
        submit.job()
    assert cluster.said == ["commodel: no sbatch on PATH; no further job is submitted"]
    assert submit.submitted == []


def with_resources(number, **resources):
    network = SimpleNamespace(network=["networks/here-1.yaml"])
    return SubmittedJobInfo(
        SimpleNamespace(resources=ResourceList(fromdict=resources), input=network), number
    )


@pytest.mark.parametrize(
    ("resources", "handed_in"),
    [
        ({"slurm_extra": "--exclusive", "nodelist": "n2,n1"}, "--exclusive --nodelist=n2,n1"),
        ({"nodelist": "n2;true"}, "--nodelist='n2;true'"),
        ({"slurm_extra": "--exclusive", "nodelist": ""}, "--exclusive"),
    ],
)
def test_the_hosts_of_a_job_are_passed_to_slurm_as_nodelist(
    cluster, look, monkeypatch, resources, handed_in
):
    seen = []
    monkeypatch.setattr(
        SlurmExecutor, "run_job", lambda self, job: seen.append(job.resources.get("slurm_extra"))
    )
    look.executor.run_job(with_resources("7", **resources).job)
    assert seen == [handed_in]


def test_a_job_waiting_for_surveyed_nodes_is_reported_once_with_remedies(cluster, look):
    for number, nodes in (("7", "n0,n1"), ("8", "")):
        look.executor.report_job_submission(with_resources(number, nodelist=nodes))
    cluster.listed = (
        "1 None\n2 Resources\n3 None\n7 ReqNodeNotAvail, UnavailableNodes:n0\n8 ReqNodeNotAvail\n"
    )
    assert [look() for _ in range(3)] == [["1", "2", "3"]] * 3
    (said,) = cluster.said
    assert said.startswith("commodel: job 7 waits for n0,n1, ")
    assert "UnavailableNodes:n0" in said
    assert said.endswith("delete networks/here-1.yaml, or run with --no-survey")


def test_a_job_that_slurm_has_forgotten_ends(cluster, look):
    """A job may end and leave the queue in an outage. It counts as succeeded; its output files show
    a failure."""
    cluster.listed = "1\n3\n"
    assert [look() for _ in range(UNLISTED)] == [["1", "2", "3"]] * (UNLISTED - 1) + [["1", "3"]]
    assert cluster.succeeded == ["2"]


def test_a_failed_cancellation_states_the_scancel_command(cluster, look):
    look.executor.cancel_jobs([])  # all are being asked about at this moment
    assert cluster.cancelled == ["1", "2", "3"]
    cluster.complaint = AWAY
    look.executor.cancel_jobs([])
    assert cluster.said[-1].endswith("once Slurm answers again: scancel --name run")


def test_the_slurm_log_of_a_killed_job_is_printed(cluster, look, monkeypatch, tmp_path):
    """The log of the job itself is empty in this case."""
    monkeypatch.setattr(
        SlurmExecutor, "report_job_error", lambda self, job, msg: cluster.said.append(msg)
    )
    log = tmp_path / "7.log"
    log.write_text("slurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***\n")
    look.executor.report_job_error(SubmittedJobInfo(None, "2"), msg="failed", aux_logs=[str(log)])
    failed, shown = cluster.said
    assert failed == "failed"
    assert shown.splitlines()[0] == f"Logfile {log}:"
    assert shown.splitlines()[2] == log.read_text().strip()
    cluster.listed = "1\n3\n"
    assert look() == ["1", "3"]
