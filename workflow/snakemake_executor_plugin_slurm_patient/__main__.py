"""Snakemake in the Slurm job of a rule that starts MPI programs by srun: without the job's
variables, which would be defaults for srun's options, as the executor of job steps does it."""

import os
from collections.abc import MutableMapping

from snakemake.cli import main

# By these, Slurm's commands find the cluster and the job.
KEPT = ("SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_JOBID")
DEFAULTS = ("SLURM_", "SRUN_", "SBATCH_")


def forget_defaults(environment: MutableMapping[str, str]) -> None:
    names = [name for name in environment if name.startswith(DEFAULTS)]
    for name in names:
        if name not in KEPT:
            del environment[name]


if __name__ == "__main__":
    forget_defaults(os.environ)
    main()
