# From an experiment's YAML to its report. `snakemake --cores 2`, or `commodel run demo`; another experiment with
# `--config experiment=NAME`. The rules only call `commodel <verb>`.
import sys
from pathlib import Path
from shlex import quote

from commodel.errors import UserError
from commodel.plan import refresh
from commodel.sources import sources
from snakemake.exceptions import WorkflowError

COMMODEL = f"{quote(sys.executable)} -m commodel"
QUIET = "--quiet" if config.get("quiet") else ""
PACKAGE = Path(workflow.basedir) / "workflow" / "commodel"

try:
    PLAN = refresh(config.get("experiment", "demo"), Path.cwd(), config.get("only"))
except UserError as error:
    raise WorkflowError(error.message)

BATCHES = {batch.name: batch for batch in PLAN.batches}
E = PLAN.experiment


wildcard_constraints:
    batch="|".join(BATCHES) or "none",
    family="|".join(PLAN.families),
    platform="|".join(PLAN.platforms),
    toolchain="mpi|smpi",


rule all:
    default_target: True
    input:
        f"results/{E}/comparison.csv",
        f"reports/{E}/{E}.xlsx",
        f"reports/{E}/index.html",


include: "workflow/rules/build.smk"
include: "workflow/rules/measure.smk"
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
