rule predict:
    input:
        sets=expand(f"results/{E}/fitted/{{platform}}/{{{{family}}}}.yaml", platform=PLAN.platforms),
        plan=f"results/{E}/plan.json",
        code=lambda wildcards: sources("predict", f"families.{wildcards.family}"),
        patterns=[
            path for kind in ("algorithms", "topologies", "layouts") for path in sorted(PACKAGE.glob(f"{kind}/*.py"))
        ],
    output:
        f"results/{E}/predictions/{{family}}.csv",
    params:
        sets=lambda wildcards, input: [part for path in input.sets for part in ("--params", path)],
    message:
        "predicting with {wildcards.family}"
    shell:
        "{COMMODEL} predict --family {wildcards.family} {params.sets:q} --plan {input.plan} --out {output}"


rule compare:
    input:
        f"results/{E}/observations.csv",
        f"results/{E}/unmeasured.csv",
        expand(f"results/{E}/predictions/{{family}}.csv", family=PLAN.families),
        plan=f"results/{E}/plan.json",
        code=sources("compare"),
    output:
        f"results/{E}/comparison.csv",
    message:
        "comparing predictions with measurements"
    shell:
        "{COMMODEL} compare --in results/{E} --out {output}"
