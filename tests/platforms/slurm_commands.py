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


def install_commands(folder: Path, partition: str, nodes: int) -> None:
    """Write scontrol and srun of a site with so many equal nodes, and without accounting."""
    folder.mkdir(exist_ok=True)
    listing = "\n".join(write_node(f"n{number}", partition, 8) for number in range(nodes))
    answers = {"partition": write_partition(partition, "YES"), "node": listing}
    write_command(folder, "scontrol", answers | {"config": NO_ACCOUNTING})
    write_command(folder, "srun", {"mpi=list": PMI2_AND_PMIX})


def write_command(folder: Path, name: str, answers: dict[str, str]) -> None:
    """Write a command that prints a text by its arguments, as a shell script."""
    cases = "".join(f"  *'{key}'*) cat <<'X'\n{text}\nX\n;;\n" for key, text in answers.items())
    path = folder / name
    path.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}*) exit 1;;\nesac\n')
    path.chmod(0o755)
