"""Of what Snakemake prints, a user sees each complaint once, in the words of the job, with the log it stands in."""

from commodel.api.snakemake_runs import JobErrors

LOCAL = """\
[Sat Nov 21 11:11:22 2026]
Job 1: measuring local-1n
commodel: no mpiexec found, which platform 'local' needs; see commodel doctor
RuleException:
CalledProcessError in file "workflow/rules/measure.smk", line 26:
Command 'set -euo pipefail;  python -m commodel measure' returned non-zero exit status 2.
[Sat Nov 21 11:11:22 2026]
Error in rule measure:
    message: None
    jobid: 1
Shutting down, this might take some time.
WorkflowError:
At least one job did not complete successfully.
"""
ELSEWHERE = """\
Job 2: measuring c-4n
Job 3: measuring c-2n
Error in rule measure:
    jobid: 2
    log: .snakemake/slurm_logs/rule_measure/c-4n/7.log (check log file(s) for error details)
    external_jobid: 7
Logfile .snakemake/slurm_logs/rule_measure/c-4n/7.log:
======================================
Job 0: measuring c-4n
commodel: player-4r-block1: rank 3 should be on n2, but is on n0
WorkflowError:
At least one job did not complete successfully.
======================================
Error in rule measure:
Logfile .snakemake/slurm_logs/rule_measure/c-2n/8.log: empty file
Error in rule fit:
Traceback (most recent call last):
  File "fit.py", line 1, in fit
    1 / 0
ZeroDivisionError: division by zero
commodel: player-4r-block1: rank 3 should be on n2, but is on n0
"""
REFUSED = """\
WorkflowError in file "Snakefile", line 37:
results/demo: another run of this experiment is at work already: ann on n1, process 7, since 2026-11-21 11:20
  File "Snakefile", line 37, in __onstart
"""
SBATCH = """\
Error in rule measure:
    message: SLURM sbatch failed. The error message was 'sbatch: error: invalid partition specified: nosuch
sbatch: error: Batch job submission failed: Invalid partition name specified'.
    sbatch call:
        sbatch --parsable -p nosuch
    jobid: 3
Trying to restart job 3.
"""


def shown(text: str) -> tuple[list[str], JobErrors]:
    lines: list[str] = []
    complaints = JobErrors(lines.append)
    for line in text.splitlines():
        complaints.read_line(line)
    return lines, complaints


def test_a_job_on_this_machine():
    lines, complaints = shown(LOCAL)
    assert lines == ["commodel: no mpiexec found, which platform 'local' needs; see commodel doctor"]
    assert complaints.stage == "measuring local-1n"


def test_jobs_elsewhere_and_a_bug():
    lines, _ = shown(ELSEWHERE)
    wrong, log = "rank 3 should be on n2, but is on n0", ".snakemake/slurm_logs/rule_measure/c-4n/7.log"
    assert lines == [
        f"commodel: player-4r-block1: {wrong} (log: {log})",
        "commodel: ZeroDivisionError: division by zero",
    ]


def test_what_snakemake_itself_complains_about():
    lines, _ = shown(REFUSED)
    assert lines == [f"snakemake: {REFUSED.splitlines()[1]}"]


def test_what_sbatch_refuses():
    lines, _ = shown(SBATCH + SBATCH)
    said = "sbatch refuses the job: invalid partition specified: nosuch; what a site needs is in profiles/README.md"
    assert lines == [f"commodel: {said}"]


def test_the_last_lines_are_kept_for_what_nobody_understands():
    lines, complaints = shown("\n".join(f"sbatch: {number}" for number in range(30)))
    assert lines == []
    assert list(complaints.last)[-1] == "sbatch: 29"
