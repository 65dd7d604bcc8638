rule fit:
    input:
        observations=f"results/{E}/observations.csv",
        plan=f"results/{E}/plan.json",
        code=lambda wildcards: sources("fit", f"families.{wildcards.family}"),
    output:
        f"results/{E}/fitted/{{platform}}/{{family}}.yaml",
    message:
        "fitting {wildcards.family} on {wildcards.platform}"
    shell:
        "{COMMODEL} fit --in {input.observations} --plan {input.plan}"
        " --family {wildcards.family} --platform {wildcards.platform} --out {output}"
