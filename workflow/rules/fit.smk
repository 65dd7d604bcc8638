# One job for all models of a platform. Models whose inputs have not changed are kept, and every model has a log.
rule fit:
    input:
        observations=str(RESULTS.table("observations")),
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=sorted({path for model in PLAN.models for path in list_fit_code(model)}),
    output:
        update([str(RESULTS.fitted("{platform}", model)) for model in PLAN.models]),
    log:
        str(RESULTS.job_log("fits.{platform}")),
        [str(RESULTS.job_log(f"fit.{{platform}}.{model}")) for model in PLAN.models],
    localrule: True
    threads: max(1, CORES // len(PLAN.platforms))
    params:
        models=[word for model in PLAN.models for word in ("--model", model)],
    message:
        f"fitting {format_count(len(PLAN.models), 'model')} on {{wildcards.platform}}"
    shell:
        f"{IN_PROCESSES} fit probes {{input.plan}} --in {{input.observations}} {{params.models:q}}"
        f" --platform {{wildcards.platform}} --out {RESULTS.folder}/fitted/{{wildcards.platform}} --cores {{threads}}"
