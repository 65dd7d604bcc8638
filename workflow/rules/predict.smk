rule predict:
    input:
        sets=expand(f"results/{E}/fitted/{{platform}}/{{{{family}}}}.yaml", platform=PLAN.platforms),
        plan=f"results/{E}/plan.json",
        family=str(PACKAGE / "families" / "{family}.py"),
        code=[PACKAGE / f"{name}.py" for name in ("patterns", "predict", "replay", "schedule", "tree")]
        + sorted(PACKAGE.glob("algorithms/*.py"))
        + sorted(PACKAGE.glob("topologies/*.py"))
        + sorted(PACKAGE.glob("layouts/*.py")),
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
        expand(f"results/{E}/predictions/{{family}}.csv", family=PLAN.families),
        plan=f"results/{E}/plan.json",
        code=PACKAGE / "compare.py",
    output:
        f"results/{E}/comparison.csv",
    message:
        "comparing predictions with measurements"
    shell:
        "{COMMODEL} compare --in results/{E} --out {output}"
