"""Proof that Slurm starts MPI programs of this installation (`check_start`): a job of some seconds.

The job starts a small program of four ranks on two nodes, with the options of `srun` that batches
have. Each `Finding` is one property of the start: its state, what was found, and the remedy. The
check ends at its time limit in any case: then the job is cancelled, and the rest is `unknown`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from commodel.errors import UserError, make_printable
from commodel.files.atomic import write_text
from commodel.files.safe_reading import MIB, read_text
from commodel.platforms.mpi_libraries import explain_mismatch
from commodel.platforms.slurm import CONTROLLER_UNREACHABLE, list_srun_options, split_fields
from commodel.platforms.tools import find_tool, run_tool
from commodel.platforms.transport import VERBOSE_VARIABLES, parse_transport
from commodel.units import format_seconds

OK, WRONG, UNKNOWN = "ok", "wrong", "unknown"
JOB_NAME = "commodel-doctor"
POLL_SECONDS = 1.0
COMMAND_SECONDS = 20.0  # that one of Slurm's commands may take
CANCEL_SECONDS = 5.0  # that scancel may take after the time limit
COMPILE_SECONDS = 60.0
FILE_SECONDS = 5.0  # in which a file of a node appears on this machine
# values of --mpi that are tried beside the wanted one
OTHER_PLUGINS = ("pmi2", "pmix", "cray_shasta")
MAX_CLOCK_RESOLUTION = 1e-6  # seconds; short messages take about as long
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")  # clock sources of Linux
# a message within a node should take less than this share of one between nodes
MAX_NEAR_SHARE = 0.8
FAST_CARDS = "InfiniBand, Omni-Path or Slingshot"
IP_FABRIC = re.compile(r"\b(tcp|sockets|udp|net)\b")
LINE = re.compile(r"^(?:\d+: )?commodel-(rank|pair) (.*)$", re.MULTILINE)

# Each process prints a line of its own, since with a wrong --mpi each is rank 0 of 1. Rank 0 then
# times a short message to every other rank.
PROGRAM = r"""
#include <mpi.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double resolution(void)
{
  double least = 1;
  for (int i = 0; i < 1000; i++) {
    double before = now(), after = before;
    while (after <= before) after = now();
    if (after - before < least) least = after - before;
  }
  return least;
}

static void read_word(const char *path, char word[64])
{
  FILE *file = fopen(path, "r");
  strcpy(word, "unknown");
  if (!file) return;
  if (fscanf(file, "%63s", word) != 1) strcpy(word, "unknown");
  fclose(file);
}

static int has(const char *pattern)
{
  glob_t found;
  int failed = glob(pattern, 0, NULL, &found);
  if (!failed) globfree(&found);
  return !failed;
}

enum { GO, END };

/* Waits without using a core, which a rank that is timed may need. */
static void sleep_until(int tag)
{
  struct timespec pause = {0, 1000000};
  for (int arrived = 0; !arrived;) {
    MPI_Iprobe(0, tag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    if (!arrived) nanosleep(&pause, NULL);
  }
}

/* Half of the shortest round trip. */
static double exchange(int rank, int other, char *byte)
{
  double least = 1;
  for (int i = 0; i < 1000; i++) {
    double begin = now();
    if (rank == 0) MPI_Send(byte, 1, MPI_CHAR, other, GO, MPI_COMM_WORLD);
    MPI_Recv(byte, 1, MPI_CHAR, other, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank > 0) MPI_Send(byte, 1, MPI_CHAR, other, GO, MPI_COMM_WORLD);
    double half = (now() - begin) / 2;
    if (half < least) least = half;
  }
  return least;
}

int main(int count, char **words)
{
  int rank, size, length;
  char name[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING], clock_source[64];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(name, &length);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\r\n")] = '\0';
  const char *node = getenv("SLURMD_NODENAME");
  read_word("/sys/devices/system/clocksource/clocksource0/current_clocksource", clock_source);
  int card = has("/sys/class/infiniband/*") || has("/dev/hfi1*") || has("/dev/cxi*");
  printf("commodel-rank %d %d %s %.3e %s %d %s\n", rank, size, node && *node ? node : name, resolution(),
         clock_source, card, version);
  fflush(stdout);
  char byte = 0;
  for (int other = 1; rank == 0 && other < size; other++)
    printf("commodel-pair %d %.3e\n", other, exchange(0, other, &byte));
  for (int other = 1; rank == 0 && other < size; other++) MPI_Send(&byte, 1, MPI_CHAR, other, END, MPI_COMM_WORLD);
  if (rank > 0) {
    sleep_until(GO);
    exchange(rank, 0, &byte);
    sleep_until(END);
    MPI_Recv(&byte, 1, MPI_CHAR, 0, END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return MPI_Finalize();
}
"""

# reasons of Slurm for a job that will start
BUSY = re.compile(r"^(?:Resources|Priority|None|Reservation|no reason)$")
# What messages of Slurm, of a shell or of the loader mean.
REMEDIES = (
    (
        r"invalid partition|partition name",
        "scontrol show partition lists them; write `slurm_partition` in {profile}",
    ),
    (
        r"invalid account|invalid qos",
        "sacctmgr show assoc user=$USER lists yours; write `slurm_account` in {profile}",
    ),
    (
        r"PartitionDown|PartitionInactive",
        "the partition takes no jobs now: sinfo -s; choose another one",
    ),
    (
        r"ReqNodeNotAvail|Nodes required for job are DOWN",
        "nodes are down, drained or reserved: sinfo -R, scontrol show reservation",
    ),
    (
        r"PartitionNodeLimit|PartitionConfig|PartitionTimeLimit",
        "the partition allows no such job: scontrol show partition",
    ),
    (
        r"Assoc\w*Limit|QOS\w*Limit|MaxJobs|AssocGrp|QOSGrp|QOSMax",
        "a limit of your account: sacctmgr show assoc user=$USER",
    ),
    (BUSY.pattern, "nothing is wrong: the nodes are busy; --wait 600 waits longer"),
    (
        r"(srun|scontrol): (command )?not found",
        "jobs have no {0} on PATH: load Slurm's module in ~/.bashrc, or ask the site",
    ),
    (
        r"plugin name for mpi|invalid MPI|cannot find mpi plugin|mpi/\w+: ",
        "srun --mpi=list has the values; write `slurm: {{mpi: VALUE}}` in the platform file",
    ),
    (
        r"error while loading shared libraries",
        "the MPI of this machine is not on the nodes: load its module in ~/.bashrc, or install into a shared folder",
    ),
    (
        r"No such file|can't cd|cannot execute",
        "nodes do not see this folder: put the project on a file system that they share",
    ),
    (
        r"contact slurm controller|Connection refused",
        "Slurm's controller does not answer: scontrol ping",
    ),
)


@dataclass(frozen=True)
class Finding:
    """A property of the start: its state (`ok`, `wrong` or `unknown`), what was found, and what to
    do."""

    check: str
    state: str
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class StartCheck:
    """A job that proves the start: where it runs, and how."""

    folder: Path  # on a file system that the nodes share
    partition: str
    account: str = ""
    options: Sequence[str] = ()  # further ones of sbatch
    mpi: str = "pmi2"
    mpi_source: str = ""  # the file or command that has the value
    nodes: int = 2
    ranks_per_node: int = 2
    profile: str = "profiles/slurm/config.yaml"

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def plugins(self) -> list[str]:
        """The values of --mpi, the wanted one first."""
        return [self.mpi, *(name for name in OTHER_PLUGINS if name != self.mpi)]


@dataclass
class Clock:
    """The time limit of a check. Commands of Slurm end with it."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    @property
    def remaining(self) -> float:
        return self.seconds - self.elapsed

    def ask(self, program: str, *arguments: str) -> tuple[str, str]:
        """Return the output of a command, and why it failed."""
        seconds = max(min(self.remaining, COMMAND_SECONDS), 1.0)
        return _call(seconds, program, *arguments)


def _call(seconds: float, program: str, *arguments: str) -> tuple[str, str]:
    """Return the output of a command of Slurm, and why it failed. `srun --mpi=list` prints to
    standard error."""
    reply = run_tool([program, *arguments], seconds)
    errors = reply.errors.strip()
    failure = (
        (make_printable("; ".join(errors.splitlines())) or reply.failure) if reply.failure else ""
    )
    return reply.output + (reply.errors if "--mpi=list" in arguments else ""), failure


def check_start(check: StartCheck, clock: Clock, show: Callable[[str], None]) -> list[Finding]:
    """Run the job, and return what it proves. `show` gets the progress."""
    missing = [name for name in ("sbatch", "squeue", "scancel") if not shutil.which(name)]
    if missing:
        raise UserError(f"found no {missing[0]} on PATH, wanted a login node of the cluster")
    _write_files(check)
    job, failure = _submit(check, clock)
    if failure:
        found = Finding("job", WRONG, failure, _find_remedy(failure, check))
        return [found, *_list_unknown("no job")]
    try:
        reason, waited = _await_end(job, check, clock, show)
    finally:
        # also after Ctrl-C; a job that has ended is not known any more
        _call(CANCEL_SECONDS, "scancel", job)
    return _judge(check, job, reason, waited)


def _write_files(check: StartCheck) -> None:
    """Compile the program and write the job's script, in an empty folder."""
    compiler = find_tool("mpicc")
    if compiler is None:
        raise UserError(
            "found no mpicc, which compiles the program of the check; see commodel doctor"
        )
    shutil.rmtree(check.folder, ignore_errors=True)
    check.folder.mkdir(parents=True)
    source = check.folder / "start.c"
    write_text(source, PROGRAM)
    program = check.folder / "start"
    failure = run_tool([compiler, "-O1", "-o", str(program), str(source)], COMPILE_SECONDS)
    if failure.failure:
        raise UserError(f"{compiler}: {make_printable(failure.errors or failure.failure)}")
    write_text(check.folder / "job.sh", make_script(check))


def make_script(check: StartCheck) -> str:
    """Return the script of the job. Each value of --mpi is tried until one starts all ranks."""
    variables = VERBOSE_VARIABLES | {"UCX_LOG_LEVEL": "info"}
    lines = [
        "#!/bin/sh",
        f"cd {shlex.quote(str(check.folder.resolve()))} || exit 1",
        *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
        'scontrol --oneliner show job "$SLURM_JOB_ID" > job.txt',
        'for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do',
        *['  echo "$host" >> ranks.hosts'] * check.ranks_per_node,
        "done",
    ]
    for plugin in check.plugins:
        options = shlex.join(list_srun_options(plugin, check.nodes, check.ranks))
        lines += [
            f"SLURM_HOSTFILE=ranks.hosts srun {options} ./start > out.{plugin} 2> err.{plugin}",
            f"echo $? > code.{plugin}",
            f"if grep -q 'commodel-rank 0 {check.ranks} ' out.{plugin}; then exit 0; fi",
        ]
    return "\n".join(lines) + "\n"


def _submit(check: StartCheck, clock: Clock) -> tuple[str, str]:
    """Return the number of the job, or why Slurm refuses it."""
    folder = check.folder.resolve()
    size = [f"--nodes={check.nodes}", f"--ntasks={check.ranks}"]
    size.append(f"--ntasks-per-node={check.ranks_per_node}")
    options = ["--parsable", f"--job-name={JOB_NAME}", "--time=1", "--no-requeue", *size]
    options += [f"--partition={check.partition}", f"--output={folder / 'job.log'}"]
    options += [f"--account={check.account}"] if check.account else []
    output, failure = clock.ask("sbatch", *options, *check.options, str(folder / "job.sh"))
    job = output.strip().partition(";")[0]
    if not failure and not job.isdigit():
        failure = f"sbatch: found {make_printable(output, 100)!r}, wanted the number of a job"
    return job, failure.replace("sbatch: error: ", "")


def _await_end(
    job: str, check: StartCheck, clock: Clock, show: Callable[[str], None]
) -> tuple[str, float]:
    """Wait until the job has ended, at most until the time limit. Return its state with the reason
    if it did not end (else an empty text), and the seconds until it started."""
    waited = 0.0
    state = "submitted"
    while clock.remaining > 0:
        output, failure = clock.ask("squeue", "--noheader", f"--jobs={job}", "--format=%T %r")
        text = output.strip()
        is_forgotten = "Invalid job id" in failure
        if not failure or is_forgotten:
            state = text
        if is_forgotten or (
            not failure and not re.match("PENDING|RUNNING|CONFIGURING|COMPLETING", text)
        ):
            _await_files(check, clock)
            return "", waited or clock.elapsed
        if failure and not CONTROLLER_UNREACHABLE.search(failure):
            return f"squeue: {failure}", waited
        if not state.startswith("PENDING"):
            waited = waited or clock.elapsed
        show(
            f"job {job}: {state.removesuffix(' None').lower()}, {clock.elapsed:.0f} of {clock.seconds:.0f} s"
        )
        time.sleep(max(0.0, min(POLL_SECONDS, clock.remaining)))
    return state, waited


def _await_files(check: StartCheck, clock: Clock) -> None:
    """Wait until the files of the nodes are seen here."""
    until = time.monotonic() + min(FILE_SECONDS, max(clock.remaining, 0.0))
    while time.monotonic() < until and not (check.folder / "job.log").exists():
        time.sleep(0.2)


def _read(check: StartCheck, name: str) -> str:
    path = check.folder / name
    return read_text(path, MIB, "a smaller file") if path.exists() else ""


@dataclass(frozen=True)
class Rank:
    """What one process printed about itself."""

    rank: int
    size: int
    host: str
    resolution: float
    clock: str
    has_card: bool
    mpi: str


def parse_ranks(text: str) -> tuple[list[Rank], dict[int, float]]:
    """Return the ranks that printed a line, and the seconds of a message from rank 0 to others."""
    ranks, pairs = [], {}
    for kind, line in LINE.findall(text):
        words = line.split(maxsplit=6)
        if kind == "pair" and len(words) == 2:
            pairs[int(words[0])] = float(words[1])
        if kind == "rank" and len(words) == 7:
            rank, size, host, resolution, source, card, mpi = words
            number = float(resolution)
            version = " ".join(mpi.split())
            ranks.append(Rank(int(rank), int(size), host, number, source, card == "1", version))
    return sorted(ranks, key=lambda rank: rank.rank), pairs


def _judge(check: StartCheck, job: str, reason: str, waited: float) -> list[Finding]:
    """Return the findings from the files of the job."""
    outputs = {name: parse_ranks(_read(check, f"out.{name}")) for name in check.plugins}
    starting = [
        name
        for name, (ranks, _) in outputs.items()
        if len(ranks) == check.ranks and ranks[0].size == check.ranks
    ]
    findings = [_judge_job(check, job, reason, waited)]
    if findings[0].state != OK and not starting:
        return [*findings, *_list_unknown("no start")]
    findings.append(_judge_size(check, outputs, starting))
    if not starting:
        return [*findings, *_list_unknown("no common start", 2)]
    plugin = starting[0]
    ranks, pairs = outputs[plugin]
    messages = _read(check, f"out.{plugin}") + _read(check, f"err.{plugin}")
    findings.append(_judge_hosts(check, ranks))
    findings += _judge_transport(ranks, pairs, messages)
    findings.append(_judge_clock(ranks))
    findings.append(_judge_sharing(check))
    return findings


CHECKS = ("job", "start", "hosts", "within a node", "between nodes", "clock", "exclusive")


def _list_unknown(reason: str, first: int = 1) -> list[Finding]:
    return [Finding(name, UNKNOWN, reason) for name in CHECKS[first:]]


def _find_remedy(text: str, check: StartCheck) -> str:
    for pattern, remedy in REMEDIES:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return remedy.format(match[1] if match.groups() else "", profile=check.profile)
    return f"look at the files in {check.folder}"


def _judge_job(check: StartCheck, job: str, reason: str, waited: float) -> Finding:
    if reason.startswith("PENDING"):
        why = reason.partition(" ")[2].strip("()") or "no reason"
        is_busy = BUSY.fullmatch(why)
        found = f"job {job} is still pending ({why}) and was cancelled"
        return Finding("job", UNKNOWN if is_busy else WRONG, found, _find_remedy(why, check))
    if reason:
        found = f"job {job} did not end in time and was cancelled: {reason.lower()}"
        remedy = "ranks hang: another value of `srun --mpi=`, or a firewall between nodes"
        return Finding("job", WRONG, found, remedy)
    log = _read(check, "job.log")
    if not (check.folder / "job.log").exists():
        remedy = "nodes do not see this folder: put the project on a file system that they share"
        return Finding(
            "job", WRONG, f"job {job} ended and wrote no file into {check.folder}", remedy
        )
    if not any((check.folder / f"code.{name}").exists() for name in check.plugins):
        last = make_printable((log.strip().splitlines() or ["without a message"])[-1], 120)
        return Finding("job", WRONG, f"job {job} ended: {last}", _find_remedy(last, check))
    wait = f"started after {waited:.0f} s" if waited else "started"
    return Finding("job", OK, f"job {job} in partition {check.partition}, {wait}")


def _judge_size(
    check: StartCheck,
    outputs: dict[str, tuple[list[Rank], dict[int, float]]],
    starting: Sequence[str],
) -> Finding:
    """Return whether the wanted value of --mpi starts all ranks as one job."""
    source = f" ({check.mpi_source})" if check.mpi_source else ""
    option = f"srun --mpi={check.mpi}{source}"
    ranks = outputs[check.mpi][0]
    if check.mpi in starting:
        return Finding(
            "start", OK, f"{check.ranks} of {check.ranks} ranks by {option}; {ranks[0].mpi}"
        )
    if ranks and all(rank.size == 1 for rank in ranks):
        found = f"world size 1: each of {len(ranks)} processes is rank 0 of 1 by {option}"
        why = explain_mismatch(ranks[0].mpi, "srun", check.mpi)
        remedy = why or f"srun --mpi={check.mpi} is not the protocol of {ranks[0].mpi}"
    elif ranks:
        found = f"world size {ranks[0].size}, wanted {check.ranks}, by {option}"
        remedy = f"look at the files in {check.folder}"
    else:
        errors = [
            *_read(check, f"err.{check.mpi}").strip().splitlines(),
            *_read(check, "job.log").splitlines(),
        ]
        errors = [line for line in errors if line.strip()]
        found = make_printable(errors[0] if errors else f"no output of {option}", 140)
        remedy = _find_remedy("\n".join(errors), check)
    if starting:
        file = (
            check.mpi_source.partition(" ")[0]
            if ".yaml" in check.mpi_source
            else "the platform file"
        )
        remedy = f"write `slurm: {{mpi: {starting[0]}}}` in {file}: it starts {check.ranks} ranks as one job"
    return Finding("start", WRONG, found, remedy)


def _judge_hosts(check: StartCheck, ranks: Sequence[Rank]) -> Finding:
    counts = Counter(rank.host for rank in ranks)
    found = ", ".join(f"{count} on {host}" for host, count in counts.items())
    if len(counts) == check.nodes and set(counts.values()) == {check.ranks_per_node}:
        return Finding("hosts", OK, found)
    wanted = f"{found}; wanted {check.ranks_per_node} on each of {check.nodes}"
    remedy = (
        "srun ignores the list of hosts (SLURM_HOSTFILE, --distribution=arbitrary): ask the site; "
        "or nodes have equal names"
    )
    return Finding("hosts", WRONG, wanted, remedy)


def _judge_transport(
    ranks: Sequence[Rank], pairs: dict[int, float], messages: str
) -> list[Finding]:
    """Return the findings on messages within a node and between nodes. If a message within a node
    takes about as long as one between nodes, it does not go through shared memory."""
    first = ranks[0].host
    hosts = {rank.rank: rank.host for rank in ranks}
    near = [seconds for rank, seconds in pairs.items() if hosts.get(rank) == first]
    far = [seconds for rank, seconds in pairs.items() if hosts.get(rank) != first]
    ucx = sorted(set(re.findall(r"inter-node cfg#\d+ tag\(([^)]*)\)", messages)))
    providers = re.findall(r"libfabric provider: (\S+)", messages)
    details = [*ucx[:1], *(f"provider {name}" for name in providers[:1])]
    # of MPICH, the text has two parts
    within, _, between = parse_transport(messages).partition("; between nodes ")
    fabric = ", ".join(filter(None, [between or within, *details]))
    return [
        _judge_near(near, far, within or "transport not reported"),
        _judge_far(ranks, far, fabric or "transport not reported"),
    ]


def _judge_near(near: Sequence[float], far: Sequence[float], names: str) -> Finding:
    if not near:
        return Finding("within a node", UNKNOWN, "one rank on a node")
    found = f"{format_seconds(min(near))} a message; {names}"
    if "through the network card" in names:
        return Finding("within a node", WRONG, found, "export OMPI_MCA_pml=ob1 takes shared memory")
    if far and min(near) > MAX_NEAR_SHARE * min(far):
        remedy = "as slow as between nodes, so not through shared memory: see the manual of the MPI"
        if "shared memory" in names:
            remedy = "as slow as between nodes: the nodes may be on one machine"
        return Finding("within a node", WRONG, found, remedy)
    return Finding("within a node", OK, found)


def _judge_far(ranks: Sequence[Rank], far: Sequence[float], names: str) -> Finding:
    if not far:
        return Finding("between nodes", UNKNOWN, "all ranks are on one node")
    found = f"{format_seconds(min(far))} a message; {names}"
    if any(rank.has_card for rank in ranks) and IP_FABRIC.search(names):
        remedy = f"nodes have {FAST_CARDS}, but this MPI uses IP: load the site's MPI, then commodel build mpi"
        return Finding("between nodes", WRONG, found, remedy)
    return Finding("between nodes", OK, found)


def _judge_clock(ranks: Sequence[Rank]) -> Finding:
    coarsest = max(ranks, key=lambda rank: rank.resolution)
    sources = sorted({rank.clock for rank in ranks})
    found = f"resolution {format_seconds(coarsest.resolution)}, source {', '.join(sources)}"
    if coarsest.resolution > MAX_CLOCK_RESOLUTION or set(sources) & set(SLOW_CLOCKS):
        remedy = (
            f"too coarse for short messages: ask the site for clock source tsc on {coarsest.host}"
        )
        return Finding("clock", WRONG, found, remedy)
    return Finding("clock", OK, found)


def _judge_sharing(check: StartCheck) -> Finding:
    """Return whether Slurm gives whole nodes to the job."""
    fields = split_fields(_read(check, "job.txt"))
    sharing = fields.get("OverSubscribe", "")
    if not sharing:
        return Finding("exclusive", UNKNOWN, "scontrol show job does not say")
    if sharing in ("NO", "EXCLUSIVE"):
        return Finding("exclusive", OK, f"whole nodes (OverSubscribe={sharing})")
    remedy = (
        f"""write `slurm_extra: "'--exclusive'"` below set-resources: measure: in {check.profile}"""
    )
    found = f"jobs of others may share the nodes (OverSubscribe={sharing})"
    return Finding("exclusive", WRONG, found, remedy)


def find_folder() -> Path:
    """Return the folder of the check's files, in the current folder."""
    return Path(os.path.relpath(Path.cwd() / "build" / "slurm-check"))
