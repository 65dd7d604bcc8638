"""Outputs of Slurm's commands, and commands that print them."""

from pathlib import Path

WITH_ACCOUNTS = "AccountingStorageEnforce = associations\nAccountingStorageType   = {}\n"
DATABASE = WITH_ACCOUNTS.format("accounting_storage/slurmdbd")
NO_ACCOUNTING = WITH_ACCOUNTS.format("accounting_storage/none")
PMI2_AND_PMIX = (
    "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\n"
    "specific pmix plugin versions available: pmix_v4\n"
)
PMIX = "srun: MPI types are...\nsrun: none\nsrun: pmix\nsrun: pmix_v3\n"


def write_node(name, partitions, cores, threads=1, features="(null)", gres="(null)", state="IDLE"):
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket={cores // 2}  CPUAlloc=0 "
        f"CPUTot={cores * threads} AvailableFeatures={features} ActiveFeatures={features} "
        f"Gres={gres} NodeAddr={name} OS=Linux 5.14.0 #1 SMP Wed Jan 1 RealMemory=256000 "
        f"Sockets=2 Boards=1 State={state} ThreadsPerCore={threads} Partitions={partitions}  "
        "BootTime=2026-11-30T06:35:17"
    )


def write_partition(name, default="NO", most="UNLIMITED", limit="1-00:00:00", share="NO"):
    return (
        f"PartitionName={name} AllowGroups=ALL AllowAccounts=ALL Default={default} QoS=N/A "
        f"Hidden=NO MaxNodes={most} MaxTime={limit} MinNodes=0 Nodes=n[001-999] "
        f"OverSubscribe={share} State=UP"
    )


# how each rank of `commodel doctor --slurm` describes itself
RANK = "commodel-rank {} {} {} 2.000e-08 tsc 0 MPICH Version: 4.2.1"
PAIRS = "commodel-pair 1 4.000e-07\ncommodel-pair 2 1.500e-06\ncommodel-pair 3 1.600e-06\n"
NETMOD = "==== OFI netmod Capability ====\nlibfabric provider: verbs - mlx5_0\n"
SUBMIT = """#!/bin/sh
for script in "$@"; do :; done
SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[0-1]' sh "$script" > "$(dirname "$script")/job.log" 2>&1
echo 7
"""


def write_start(hosts=("n0", "n0", "n1", "n1")) -> str:
    """Return what the ranks of a start print."""
    lines = [RANK.format(rank, len(hosts), host) for rank, host in enumerate(hosts)]
    return NETMOD + "\n".join(lines) + "\n" + PAIRS


def install_commands(folder: Path, partition: str, nodes: int) -> None:
    """Write Slurm's commands of a site with so many equal nodes, and without accounting. A job runs
    at once."""
    folder.mkdir(exist_ok=True)
    listing = "\n".join(write_node(f"n{number}", partition, 8) for number in range(nodes))
    answers = {"partition": write_partition(partition, "YES"), "node": listing}
    answers |= {"config": NO_ACCOUNTING, "hostnames": "n0\nn1", "show job": "OverSubscribe=NO"}
    write_command(folder, "scontrol", answers)
    write_command(folder, "srun", {"mpi=list": PMI2_AND_PMIX, "mpi=pmi2": write_start()})
    write_command(folder, "squeue", {"jobs": ""})
    write_command(folder, "scancel", {"": ""})
    write_script(folder, "sbatch", SUBMIT)


def write_command(folder: Path, name: str, answers: dict[str, str]) -> None:
    """Write a command that prints a text by its arguments, as a shell script."""
    cases = "".join(f"  *'{key}'*) cat <<'X'\n{text}\nX\n;;\n" for key, text in answers.items())
    write_script(folder, name, f'#!/bin/sh\ncase "$*" in\n{cases}*) exit 1;;\nesac\n')


def write_script(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
