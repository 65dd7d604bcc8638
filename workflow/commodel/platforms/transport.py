"""The transport of messages within a node, such as shared memory (`detect_node_transport`). It is
parsed from the MPI library's verbose output."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from commodel.platforms.launchers import allow_root
from commodel.platforms.tools import find_sibling, find_tool, run_tool

PROGRAM = """#include <mpi.h>
int main(int count, char **words)
{
  int rank;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Sendrecv_replace(&rank, 1, MPI_INT, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return MPI_Finalize();
}
"""
MPIEXEC_TIMEOUT = 15  # seconds after which mpiexec ends a program that hangs
VERBOSE_VARIABLES = {  # environment variables for verbose output
    "OMPI_MCA_pml_base_verbose": "10",
    "OMPI_MCA_mtl_base_verbose": "10",
    "OMPI_MCA_mtl_ofi_verbose": "10",
    "OMPI_MCA_bml_base_verbose": "10",
    "OMPI_MCA_btl_base_verbose": "10",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "MPIEXEC_TIMEOUT": str(MPIEXEC_TIMEOUT),
}
# names of transports over IP, which are slow within a node
IP_TRANSPORTS = {"net", "tcp", "sockets", "udp"}


def detect_node_transport() -> str:
    """Return the transport between two ranks on this machine, in one line; empty if there is no MPI
    library."""
    compiler = find_tool("mpicc")
    starter = find_sibling("mpicc", "mpiexec")
    if not compiler or not starter:
        return ""
    with TemporaryDirectory() as folder:
        source, program = Path(folder) / "two.c", Path(folder) / "two"
        source.write_text(PROGRAM)
        failure = run_tool([compiler, "-o", str(program), str(source)], 60).failure
        if failure:
            return f"unknown: {failure}"
        settings = [
            f"{name}={value}"
            for name, value in (VERBOSE_VARIABLES | allow_root(os.geteuid())).items()
        ]
        reply = run_tool(["env", *settings, starter, "-n", "2", str(program)], 2 * MPIEXEC_TIMEOUT)
    transport = parse_transport(reply.output + reply.errors)
    failure = reply.failure.replace("env", Path(starter).name, 1)
    return "; ".join(part for part in (transport or "not reported", failure) if part)


def parse_transport(text: str) -> str:
    """Return the transport named in the verbose output."""
    pml = re.search(r"selected (\w+) best priority", text)
    if pml:
        return _describe_open_mpi(pml[1], text)
    device = re.search(r"==== (\w+) netmod Capability", text)
    if device:
        return f"MPICH: shared memory; between nodes {device[1]}"
    return ""


def _describe_open_mpi(pml: str, text: str) -> str:
    carriers = {name for name in re.findall(r"Using (\w+) btl for send", text) if name != "self"}
    providers = set(re.findall(r"mtl:ofi:prov: (\S+)", text)) if pml == "cm" else set()
    line = " ".join(
        [
            f"Open MPI: pml {pml}",
            *sorted(carriers),
            *(f"provider {name}" for name in sorted(providers)),
        ]
    )
    if (carriers | providers) & IP_TRANSPORTS:
        line += ", through the network card: export OMPI_MCA_pml=ob1 takes shared memory"
    return line
