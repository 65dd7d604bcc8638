rule fit:
    input:
        observations=f"results/{E}/observations.csv",
        plan=f"results/{E}/plan.json",
        family=str(PACKAGE / "families" / "{family}.py"),
        code=[PACKAGE / f"{name}.py" for name in ("fit", "fitting", "functions", "roundtrips", "stats")],
    output:
        f"results/{E}/fitted/{{platform}}/{{family}}.yaml",
    message:
        "fitting {wildcards.family} on {wildcards.platform}"
    shell:
        "{COMMODEL} fit --in {input.observations} --plan {input.plan}"
        " --family {wildcards.family} --platform {wildcards.platform} --out {output}"
