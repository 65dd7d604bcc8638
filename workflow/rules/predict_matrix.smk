# A workflow of its own: predictions of an experiment's matrix, in parts, each a job, then joined. `commodel predict
# matrix EXPERIMENT --jobs N --profile slurm` calls it; so does `snakemake --snakefile workflow/rules/predict_matrix.smk
# --profile slurm --config experiment=FILE params='["A.yaml", "B.yaml"]' out=predictions.parquet parts=16`.
import sys
from pathlib import Path
from shlex import quote

from commodel.errors import UserError
from commodel.plan.planning import list_tables
from commodel.results.campaign import open_lock
from commodel.files.safe_paths import SafePath
from commodel.sources import PACKAGE, list_source_files
from snakemake.exceptions import WorkflowError

COMMODEL = "COMMODEL_JOB={log:q} " + quote(sys.executable) + " -m commodel"
OUT = str(config["out"])
PARTS = int(config["parts"])
HELD = []


onstart:
    try:
        HELD.append(open_lock(SafePath(Path(f"{OUT}.parts")), "another run that predicts into it"))
    except UserError as error:
        raise WorkflowError(error.message)


localrules:
    predictions,


rule predictions:
    default_target: True
    input:
        parts=expand("{out}.parts/{number}-of-{parts}.parquet", out=OUT, number=range(1, PARTS + 1), parts=PARTS),
    output:
        OUT,
    log:
        f"{OUT}.parts/logs/predictions.log",
    message:
        "joining the predictions"
    shell:
        f"{COMMODEL} export matrix {{input.parts:q}} --out {{output:q}}"


rule part:
    input:
        experiment=config["experiment"],
        tables=list_tables(config["experiment"]),
        sets=config["params"],
        code=list_source_files("api.matrices"),
        patterns=[
            path
            for kind in ("models/families", "patterns/algorithms", "patterns/trees/topologies", "patterns/layouts")
            for path in sorted(PACKAGE.glob(f"{kind}/*.py"))
        ],
    output:
        temp(f"{OUT}.parts/{{number}}-of-{PARTS}.parquet"),
    log:
        f"{OUT}.parts/logs/part.{{number}}-of-{PARTS}.log",
    resources:
        tasks=1,
        mem_mb=4000,
        runtime=240,
    params:
        sets=lambda wildcards, input: [word for path in input.sets for word in ("--params", path)],
        by_hand=[word for text in config.get("set", []) for word in ("--set", text)],
        platform=["--platform", str(config["on"])] if config.get("on") else [],
        draws=["--draws", str(config["draws"])] if "draws" in config else [],
        parts=PARTS,
    message:
        f"predicting part {{wildcards.number}} of {PARTS}"
    shell:
        f"{COMMODEL} predict matrix"
        " {input.experiment:q} {params.sets:q} {params.by_hand:q} {params.platform:q} {params.draws:q}"
        " --part {wildcards.number}/{params.parts} --out {output:q}"
