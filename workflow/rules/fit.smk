# One process for all models of a platform. Models whose inputs have not changed are kept, and every model has a log.
rule fit:
    input:
        observations=str(RESULTS.table("observations")),
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=sorted({path for family in PLAN.families for path in list_fit_code(family)}),
    output:
        update([str(RESULTS.fitted("{platform}", family)) for family in PLAN.families]),
    log:
        str(RESULTS.job_log("fits.{platform}")),
        [str(RESULTS.job_log(f"fit.{{platform}}.{family}")) for family in PLAN.families],
    localrule: True
    params:
        families=[word for family in PLAN.families for word in ("--family", family)],
    message:
        f"fitting {format_count(len(PLAN.families), 'model')} on {{wildcards.platform}}"
    shell:
        f"{COMMODEL} fit probes {{input.plan}} --in {{input.observations}} {{params.families:q}}"
        f" --platform {{wildcards.platform}} --out {RESULTS.folder}/fitted/{{wildcards.platform}}"
