rule fit:
    input:
        observations=str(RESULTS.table("observations")),
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=lambda wildcards: list_source_files("fits.probe_fits", f"models.families.{wildcards.family}"),
    output:
        str(RESULTS.fitted("{platform}", "{family}")),
    log:
        str(RESULTS.job_log("fit.{platform}.{family}")),
    localrule: True
    message:
        "fitting {wildcards.family} on {wildcards.platform}"
    shell:
        COMMODEL + " fit --in {input.observations} --plan {input.plan}"
        " --family {wildcards.family} --platform {wildcards.platform} --out {output}"
