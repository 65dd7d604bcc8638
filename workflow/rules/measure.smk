from commodel.plan.planning import (
    find_constraint,
    find_gres,
    find_launcher,
    find_nodelist,
    find_programs_file,
    runs_alone,
)
from commodel.results.campaign import order_batches, reopen_batches
from commodel.plan.surveys import is_survey, find_network_file, list_networks_needed

# A batch that was done before it got new points is measured again.
if CAMPAIGN.lock:
    reopen_batches(CAMPAIGN)

# The first answers need the probes. Without priorities, Snakemake begins with the batches of most points.
PRIORITIES = {batch.name: -number for number, batch in enumerate(order_batches(PLAN.batches))}

SURVEYED = {batch.platform: batch for batch in PLAN.batches if is_survey(batch)}


# The survey of a platform becomes its network, and results/EXPERIMENT/plan.json a plan with its levels.
rule learn:
    input:
        lambda wildcards: str(CAMPAIGN.done_file(SURVEYED[wildcards.platform])),
    output:
        str(find_network_file("{platform}", "{digest}")),
    log:
        str(RESULTS.job_log("learn.{platform}.{digest}")),
    wildcard_constraints:
        platform="|".join(SURVEYED) or "none",
    localrule: True
    params:
        experiment=str(config.get("experiment", "demo")),
        only=["--only", config["only"]] if config.get("only") else [],
    message:
        "learning the network of {wildcards.platform}"
    shell:
        f"{COMMODEL} plan {{params.experiment:q}} --learn {{wildcards.platform}} {{params.only:q}}"


# One job an allocation. Only the `done` file is declared: the raw samples beside it survive a job that fails, and the
# next run measures only what is missing. It holds the time: of two empty files Snakemake takes the younger one for the
# same, and would not collect what a job measured after the run that wanted it was killed. A Slurm job depends on the hosts
# in its network's file: if they were surveyed again, it starts again, and measures what is missing on these hosts.
rule measure:
    input:
        plan=ancient(CAMPAIGN.find_planned_file(RESULTS.plan, any_version=True)),
        programs=lambda wildcards: find_programs_file(PLAN, wildcards.batch),
        cases=lambda wildcards: CAMPAIGN.find_planned_file(RESULTS.cases(wildcards.batch)),
        network=lambda wildcards: [
            file if find_launcher(PLAN, wildcards.batch).in_job else ancient(file)
            for file in list_networks_needed(PLAN, wildcards.batch)
        ],
    output:
        str(RESULTS.done("{batch}")),
    log:
        str(RESULTS.job_log("measure.{batch}")),
    priority: lambda wildcards: PRIORITIES[wildcards.batch]
    threads: lambda wildcards: workflow.cores if runs_alone(PLAN, wildcards.batch, workflow.local_exec) else 1
    resources:
        mpi="srun",
        nodes=lambda wildcards: BATCHES[wildcards.batch].nodes,
        tasks=lambda wildcards: BATCHES[wildcards.batch].tasks,
        runtime=lambda wildcards: BATCHES[wildcards.batch].minutes,
        constraint=lambda wildcards: find_constraint(PLAN, wildcards.batch),
        gres=lambda wildcards: find_gres(PLAN, wildcards.batch),
        tasks_per_gpu=0,  # else the executor gives each GPU all tasks
        nodelist=lambda wildcards: find_nodelist(PLAN, wildcards.batch),
    message:
        "measuring {wildcards.batch}"
    shell:
        f"{COMMODEL} measure {QUIET} --in {{input.plan}} --batch {{wildcards.batch}}"
        f" --out results/{E}/raw/{{wildcards.batch}}"
        " && date +%s.%N > {output}"
