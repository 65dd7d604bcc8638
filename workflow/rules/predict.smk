rule predict:
    input:
        sets=[str(RESULTS.fitted(platform, "{family}")) for platform in PLAN.platforms],
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=lambda wildcards: list_source_files("predictions.predictions", f"models.families.{wildcards.family}"),
        patterns=[
            path
            for kind in ("patterns/algorithms", "patterns/trees/topologies", "patterns/layouts")
            for path in sorted(PACKAGE.glob(f"{kind}/*.py"))
        ],
    output:
        str(RESULTS.predictions("{family}")),
    log:
        str(RESULTS.job_log("predict.{family}")),
    localrule: True
    params:
        sets=lambda wildcards, input: [part for path in input.sets for part in ("--params", path)],
    message:
        "predicting with {wildcards.family}"
    shell:
        f"{COMMODEL} predict --family {{wildcards.family}} {{params.sets:q}}" " --plan {input.plan} --out {output}"


rule compare:
    input:
        str(RESULTS.table("observations")),
        str(RESULTS.table("unmeasured")),
        [str(RESULTS.predictions(family)) for family in PLAN.families],
        sets=[str(RESULTS.fitted(platform, family)) for platform in PLAN.platforms for family in PLAN.families],
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=list_source_files("compare.comparison"),
    output:
        report(
            str(RESULTS.table("comparison")),
            caption="../report/comparison.rst",
            category="commodel",
            labels={"experiment": E, "file": "comparison"},
        ),
    log:
        str(RESULTS.job_log("compare")),
    localrule: True
    message:
        "comparing predictions with measurements"
    shell:
        f"{COMMODEL} compare --in {RESULTS.folder} --out {{output}} --sets"
