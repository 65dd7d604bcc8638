"""Run `snakemake --lint` on the workflow. The linter exits with 1 for any finding; here only
findings that are not accepted fail."""

import re
import subprocess
import sys

# Rules import commodel from the Python that Snakemake runs in; batches start containers themselves:
# docs/snakemake.md.
ACCEPTED = "Specify a conda environment or container for each rule."


def find_lints() -> list[str]:
    command = [sys.executable, "-m", "snakemake", "--lint"]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    blocks = re.findall(r"^Lints for (.+):\n((?: .*\n)+)", linted.stderr, re.MULTILINE)
    if linted.returncode and not blocks:  # a workflow that cannot be read
        return [linted.stderr.strip()]
    titles = [
        (place, title)
        for place, text in blocks
        for title in re.findall(r"^ {4}\* (.+):$", text, re.MULTILINE)
    ]
    return [f"{place}: {title}" for place, title in titles if title != ACCEPTED]


if __name__ == "__main__":
    sys.exit("\n".join(find_lints()) or 0)
