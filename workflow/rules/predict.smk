# One job for all models. Tables of models whose inputs have not changed are kept, and every model has a log.
rule predict:
    input:
        sets=[
            str(RESULTS.fitted(platform, model))
            for model in PLAN.models
            for platform in PLAN.platforms
        ],
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=sorted({path for model in PLAN.models for path in list_prediction_code(model)}),
    output:
        update([str(RESULTS.predictions(model)) for model in PLAN.models]),
    log:
        str(RESULTS.job_log("predictions")),
        [str(RESULTS.job_log(f"predict.{model}")) for model in PLAN.models],
    localrule: True
    threads: CORES
    params:
        sets=lambda wildcards, input: [part for path in input.sets for part in ("--params", path)],
    message:
        f"predicting with {format_count(len(PLAN.models), 'model')}"
    shell:
        f"{IN_PROCESSES} predict plan {{input.plan}} {{params.sets:q}} --out {RESULTS.folder}/predictions --cores {{threads}}"


rule compare:
    input:
        str(RESULTS.table("observations")),
        str(RESULTS.table("unmeasured")),
        [str(RESULTS.predictions(model)) for model in PLAN.models],
        sets=[
            str(RESULTS.fitted(platform, model))
            for platform in PLAN.platforms
            for model in PLAN.models
        ],
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=list_source_files("compare.comparison"),
    output:
        table=report(
            str(RESULTS.table("comparison")),
            caption="../report/comparison.rst",
            category="commodel",
            labels={"experiment": E, "file": "comparison"},
        ),
        recommended=str(RESULTS.predictions("recommended")),
    log:
        str(RESULTS.job_log("compare")),
    localrule: True
    threads: CORES
    message:
        "comparing predictions with measurements"
    shell:
        f"{IN_PROCESSES} compare --in {RESULTS.folder} --out {{output.table}} --sets --cores {{threads}}"
