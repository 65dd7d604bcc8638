"""commodel init: a project of your own, with params, profiles and a Snakefile."""

from pathlib import Path

import click

from commodel.errors import UserError

SNAKEFILE = """\
# The workflow of the installed commodel: `snakemake --cores 2 --config experiment=demo`, or `commodel run demo`.
# Rules of your own may follow.
from commodel.sources import ROOT


include: str(ROOT / "Snakefile")
"""
COPIED = (
    *(f"params/experiments/{name}.yaml" for name in ("cluster", "demo", "sample")),
    *(
        f"params/platforms/{name}"
        for name in ("cluster.yaml", "local.yaml", "fast-ethernet-32.yaml", "fast-ethernet-32.xml")
    ),
    *(f"profiles/{name}/config.yaml" for name in ("default", "local", "slurm")),
    "profiles/README.md",
)
SCHEMAS = "$schema=../../workflow/schemas/"
IGNORED = "/.snakemake/\n/build/\n/reports/\n/results/\n"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Make a project in DIR: experiments and platforms to start from, profiles, and a Snakefile that uses the workflow
    of this installation. Results, reports and compiled programs will lie there too; an upgrade touches nothing of it.
    """
    from commodel.files.atomic import write_text
    from commodel.sources import ROOT

    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in COPIED}
    texts = {name: text.replace(SCHEMAS, f"$schema={ROOT}/workflow/schemas/") for name, text in texts.items()}
    texts |= {"Snakefile": SNAKEFILE, ".gitignore": IGNORED}
    if there := [name for name in (*texts, "slurm") if (folder / name).exists() or (folder / name).is_symlink()]:
        raise UserError(
            f"found {there[0]} there already, wanted a folder without one; nothing was written", file=folder
        )
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / name, text)
    (folder / "slurm").symlink_to("profiles/slurm")  # what `snakemake --profile slurm` looks for
    click.echo(f"{folder}: a project; try\n  cd {folder}\n  commodel plan demo\n  commodel run demo")
