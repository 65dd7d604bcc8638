# The first answers of a campaign that measures for long, and its page so far. A failure there stops nothing. While ranks
# may measure on this machine, which takes all its cores, no such job runs.
rule so_far:
    input:
        lambda wildcards: [str(CAMPAIGN.done_file(batch)) for batch in PARTS[int(wildcards.part)]],
        # one after another: they share a folder
        lambda wildcards: [
            f"{RESULTS.folder}/so-far/part-{part}" for part in range(int(wildcards.part))[-1:]
        ],
    output:
        touch(f"{RESULTS.folder}/so-far/part-{{part}}"),
    log:
        str(RESULTS.job_log("so-far.{part}")),
    wildcard_constraints:
        part="[0-9]+",
    priority: 50
    localrule: True
    message:
        "reporting what is measured so far"
    shell:
        f"{IN_PROCESSES} report --in {RESULTS.folder} --out reports/{E} --so-far > /dev/null || true"
