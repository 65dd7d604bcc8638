from commodel.plan import constraint_of, launcher_of
from commodel.toolchain import ROOT


# One job an allocation. Only the `done` file is declared: the raw samples beside it survive a job that fails, and the
# next run measures only what is missing.
rule measure:
    input:
        plan=ancient(f"results/{E}/plan.json"),
        programs=lambda wildcards: str(ROOT / "build" / launcher_of(PLAN, wildcards.batch).toolchain / "built"),
        cases=f"results/{E}/batches/{{batch}}.txt",
    output:
        touch(f"results/{E}/raw/{{batch}}/done"),
    threads: lambda wildcards: workflow.cores if launcher_of(PLAN, wildcards.batch).busy else 1
    resources:
        mpi="srun",
        nodes=lambda wildcards: BATCHES[wildcards.batch].nodes,
        tasks=lambda wildcards: BATCHES[wildcards.batch].tasks,
        runtime=lambda wildcards: BATCHES[wildcards.batch].minutes,
        constraint=lambda wildcards: constraint_of(PLAN, wildcards.batch),
    message:
        "measuring {wildcards.batch}"
    shell:
        "{COMMODEL} measure {QUIET} --in {input.plan} --batch {wildcards.batch} --out results/{E}/raw/{wildcards.batch}"


rule collect:
    input:
        expand(f"results/{E}/raw/{{batch}}/done", batch=BATCHES),
        plan=f"results/{E}/plan.json",
        code=sources("collect", "distributions"),
    output:
        observations=f"results/{E}/observations.csv",
        summary=f"results/{E}/summary.csv",
        distributions=f"results/{E}/distributions.csv",
    message:
        "collecting the samples"
    shell:
        "{COMMODEL} collect --in {input.plan} --out {output.observations}"
