# From an experiment's YAML to its report. `snakemake --cores 2`, or `commodel run demo`; another experiment with
# `--config experiment=NAME`. `--config finish=true` measures nothing and reports what there is. The rules only call
# `commodel <verb>`.
if exists("config/config.yaml"):

    configfile: "config/config.yaml"


include: "workflow/rules/common.smk"


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
    localrule: True


if not FINISH:

    include: "workflow/rules/build.smk"
    include: "workflow/rules/measure.smk"


include: "workflow/rules/collect.smk"
include: "workflow/rules/fit.smk"
include: "workflow/rules/predict.smk"
include: "workflow/rules/report.smk"
