# What all rules know: the campaign, whose folder is held since its plan was made, and how a verb is called, which writes
# the job's first log itself beside what it prints. Commands are put together where a rule is read: in a rule that another
# workflow takes from here as a module, no name of ours is known.
import sys
import threading
from shlex import quote

from commodel.results.campaign import begin_campaign, check_workflow_settings, list_interim_parts
from commodel.errors import UserError
from commodel.plan.planning import require_mpi_types
from commodel.platforms.slurm import NOTHING_SUBMITTED
from commodel.platforms.toolchains import list_toolchains
from commodel.results.stage_files import (
    list_extension_code,
    list_fit_code,
    list_prediction_code,
    list_section_code,
)
from commodel.sources import PACKAGE, list_source_files
from commodel.units import format_count
from snakemake.exceptions import WorkflowError

COMMODEL = "COMMODEL_JOB={log[0]:q} " + quote(sys.executable) + " -m commodel"
# A job with several cores uses them by processes. Snakemake would also give them to linear algebra, whose threads then
# wait for each other.
IN_PROCESSES = f"OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 {COMMODEL}"
# Of all jobs together. A profile that submits them need not say how many; then a job here takes one.
CORES = workflow.resource_settings.cores or 1
QUIET = "--quiet" if config.get("quiet") else ""
FINISH = bool(config.get("finish"))

try:
    check_workflow_settings(config)
    SURVEY = config.get("survey", True) not in (False, "false", "False")
    CAMPAIGN = begin_campaign(
        str(config.get("experiment", "demo")),
        config.get("only"),
        workflow.is_main_process,
        SURVEY,
        workflow.output_settings.dryrun,
    )
except UserError as error:
    raise WorkflowError(error.message)
except OSError as error:
    raise WorkflowError(f"{error.filename}: {error.strerror}")

PLAN, RESULTS = CAMPAIGN.plan, CAMPAIGN.results
BATCHES = {batch.name: batch for batch in PLAN.batches}
E = PLAN.experiment
# What is measured so far is reported after each of these lists of batches.
PARTS = [] if FINISH else list_interim_parts(CAMPAIGN, config.get("so_far"))


# Who only looks need not hold the folder: nothing is started then.
onstart:
    if CAMPAIGN.refusal:
        raise WorkflowError(CAMPAIGN.refusal)
    try:
        require_mpi_types(PLAN, CAMPAIGN.unfinished)
    except UserError as error:
        raise WorkflowError(f"{error.message}; {NOTHING_SUBMITTED}")


wildcard_constraints:
    batch="|".join(BATCHES) or "none",
    model="|".join(PLAN.models),
    platform="|".join(PLAN.platforms),
    toolchain="|".join(list_toolchains()),
