"""The verbs that set a project up: its files, the installed software, and completion by TAB."""

from pathlib import Path

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH
from commodel.errors import UserError

SNAKEFILE = """\
# The workflow of the installed commodel: `snakemake --cores 2 --config experiment=demo`, or `commodel run demo`.
# Rules of your own may follow. The directive `include:` would leave the default target behind.
from commodel.sources import ROOT

workflow.include(str(ROOT / "workflow" / "Snakefile"), overwrite_default_target=True)
"""
COPIED_FILES = (
    *(f"params/experiments/{name}.yaml" for name in ("cluster", "demo", "sample")),
    *(
        f"params/platforms/{name}"
        for name in ("cluster.yaml", "local.yaml", "fast-ethernet-32.yaml", "fast-ethernet-32.xml")
    ),
    *(f"profiles/{name}/config.yaml" for name in ("default", "local", "slurm")),
    "profiles/README.md",
)
SCHEMA_COMMENT = "$schema=../../workflow/schemas/"
SLURM_PROFILE = "profiles/slurm"
GITIGNORE = "/.snakemake/\n/build/\n/reports/\n/results/\n"


@click.command(
    cls=Verb,
    examples=("commodel init mine", "commodel -C mine run sample"),
    arguments={"DIR": "Folder to make, or one without other files of these names."},
)
@click.argument("folder", metavar="DIR", type=PATH)
def init(folder: Path) -> None:
    from commodel.files.atomic import write_text
    from commodel.sources import ROOT

    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in COPIED_FILES}
    texts = {
        name: text.replace(SCHEMA_COMMENT, f"$schema={ROOT}/workflow/schemas/")
        for name, text in texts.items()
    }
    texts |= {".gitignore": GITIGNORE}
    # if it exists, snakedeploy created the project
    if not (folder / "workflow" / "Snakefile").exists():
        texts["Snakefile"] = SNAKEFILE
    file = next((path for path in (folder, *folder.parents) if path.is_file()), None)
    if file:
        raise UserError("found a file, wanted a folder, or a name for a new one", file=file)
    slurm = folder / "slurm"  # what `snakemake --profile slurm` looks for
    existing = [name for name in texts if _is_another(folder / name, texts[name])]
    existing += ["slurm"] if slurm.exists() and not slurm.samefile(folder / SLURM_PROFILE) else []
    if existing:
        message = f"found another {existing[0]}, wanted a folder without one; nothing was written"
        raise UserError(message, file=folder)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / name, text)
    if not slurm.is_symlink():
        slurm.symlink_to(SLURM_PROFILE)
    click.echo(
        f"{folder}: a project; try\n  cd {folder}\n  commodel plan demo\n  commodel run demo"
    )


def _is_another(path: Path, text: str) -> bool:
    from commodel.files.safe_reading import MIB, read_bytes

    if not path.exists():
        return path.is_symlink()
    return path.is_dir() or read_bytes(path, MIB, "a smaller file") != text.encode()


@click.command(
    cls=Verb, examples=("commodel doctor", "commodel doctor --need smpirun || echo no SimGrid here")
)
@make_option_group(
    "Output",
    click.option(
        "--need",
        metavar="PROGRAM",
        help="Print nothing, and exit with code 1 if this program is missing.",
    ),
)
def doctor(need: str | None) -> None:
    from commodel.api.installation import doctor as list_programs
    from commodel.platforms.tools import find_tool

    if need:
        raise SystemExit(0 if find_tool(need) else 1)
    click.echo(list_programs().text())


@click.command(
    cls=Verb,
    examples=(
        'eval "$(commodel completion bash)"  # in ~/.bashrc; zsh: in ~/.zshrc',
        "commodel completion fish | source   # in ~/.config/fish/config.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    from click.shell_completion import get_completion_class

    from commodel.cli import main

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(main, {}, "commodel", "_COMMODEL_COMPLETE").source())
