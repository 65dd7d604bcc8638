# From an experiment's YAML to its report. `snakemake --cores 2`, or `commodel run demo`; another experiment with
# `--config experiment=NAME`. `--config finish=true` measures nothing and reports what there is. The rules only call
# `commodel <verb>`.
import sys
from pathlib import Path
from shlex import quote

from commodel.results.campaign import begin
from commodel.errors import UserError
from commodel.sources import sources
from snakemake.exceptions import WorkflowError

COMMODEL = f"{quote(sys.executable)} -m commodel"
QUIET = "--quiet" if config.get("quiet") else ""
FINISH = bool(config.get("finish"))
PACKAGE = Path(workflow.basedir) / "workflow" / "commodel"

try:
    CAMPAIGN = begin(str(config.get("experiment", "demo")), config.get("only"), workflow.is_main_process)
except UserError as error:
    raise WorkflowError(error.message)
except OSError as error:
    raise WorkflowError(f"{error.filename}: {error.strerror}")

PLAN, RESULTS = CAMPAIGN.plan, CAMPAIGN.results
BATCHES = {batch.name: batch for batch in PLAN.batches}
E = PLAN.experiment


# The folder is held since the plan was made. Who only looks need not hold it: nothing is started then.
onstart:
    if CAMPAIGN.refusal:
        raise WorkflowError(CAMPAIGN.refusal)


wildcard_constraints:
    batch="|".join(BATCHES) or "none",
    family="|".join(PLAN.families),
    platform="|".join(PLAN.platforms),
    toolchain="mpi|smpi",


# A batch that is not done is measured also where a report has been made without it, or with what it was before; and the
# samples are collected again where their table is gone, though what was made from it is there.
rule all:
    default_target: True
    input:
        [] if FINISH else [str(CAMPAIGN.done(batch)) for batch in PLAN.batches],
        str(RESULTS.table("observations")),
        str(RESULTS.table("comparison")),
        f"reports/{E}/{E}.xlsx",
        f"reports/{E}/index.html",


if not FINISH:

    include: "workflow/rules/build.smk"
    include: "workflow/rules/measure.smk"


include: "workflow/rules/collect.smk"
include: "workflow/rules/fit.smk"
include: "workflow/rules/predict.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    build,
    collect,
    fit,
    predict,
    compare,
    report,
