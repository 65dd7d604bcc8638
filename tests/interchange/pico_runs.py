"""Files of a run as PICO leaves them, and how it packs them."""

import tarfile

RUN = "2025_04_10___20_36_45"
HEAD = (
    "timestamp,test_id,nnodes,tasks_per_node,collective_type,mpi_lib,mpi_lib_version,libbine_version,gpu_awareness,"
    "gpu_lib,gpu_lib_version,output_level,MPI_Op,notes\n"
)
OMPI = "OMPI,4.1.5,1.0.0,no,null,null,summarized,MPI_SUM, UCX_MAX_RNDV_RAILS=1\r"
CUDA = "OMPI,4.1.6,1.0.0,yes,CUDA,12.1,all,null,null"


def line(test, nodes, per_node, collective, rest=OMPI):
    return f"{RUN},{test},{nodes},{per_node},{collective},{rest}\n"


def samples(*nanoseconds, columns=""):
    return f"highest{columns}\n" + "".join(f"{time}\n" for time in nanoseconds)


def alloc(*hosts, padding="\0" * 9):
    return "MPI_Rank,allocation\n" + padding.join(f"{rank},{host}\n" for rank, host in enumerate(hosts))


def packed(folder):
    archive = folder.with_name(f"{folder.name}.tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return archive
