# Without `finish` all batches have to be done. With it those that are not are left out, and what they left behind is an
# input only so that the samples are collected again after another try.
if FINISH and not CAMPAIGN.finished:
    raise WorkflowError(f"{CAMPAIGN.folder}: no batch has finished: there is nothing to report")


rule collect:
    input:
        [
            str(CAMPAIGN.done_file(batch))
            for batch in (CAMPAIGN.finished if FINISH else PLAN.batches)
        ],
        left=[
            str(path)
            for batch in CAMPAIGN.unfinished
            if FINISH and (path := RESULTS.state(batch.name)).exists()
        ],
        plan=CAMPAIGN.find_planned_file(RESULTS.plan),
        code=list_source_files("results.collection", "results.latency_distributions"),
    output:
        observations=str(RESULTS.table("observations")),
        summary=str(RESULTS.table("summary")),
        distributions=str(RESULTS.table("distributions")),
        unmeasured=str(RESULTS.table("unmeasured")),
    log:
        str(RESULTS.job_log("collect")),
    retries: 0  # a damaged raw file is moved aside: its batch has to be measured first
    localrule: True
    params:
        unfinished="--unfinished" if FINISH else "",
    message:
        "collecting the samples"
    shell:
        COMMODEL + " collect --in {input.plan} --out {output.observations} {params.unfinished}"
