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
FIRST_EXPERIMENT = "params/experiments/cluster.yaml"
WRITTEN_BY = "# Written by commodel init --slurm, which writes it again until it is edited:"
GITIGNORE = "/.snakemake/\n/build/\n/reports/\n/results/\n"


@click.command(
    cls=Verb,
    examples=("commodel init mine", "commodel init mycluster --slurm standard"),
    arguments={"DIR": "Folder to make, or one without other files of these names."},
)
@click.argument("folder", metavar="DIR", type=PATH)
@make_option_group(
    "Cluster",
    click.option(
        "--slurm",
        "partition",
        metavar="PARTITION",
        is_flag=False,
        flag_value="",
        help="Describe this partition of Slurm, else the default one: platform, profile and a first experiment.",
    ),
)
def init(folder: Path, partition: str | None) -> None:
    from commodel.files.atomic import write_text
    from commodel.sources import ROOT

    site_files = _describe_partition(partition) if partition is not None else {}
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in COPIED_FILES}
    texts = {name: _name_schemas(text) for name, text in texts.items()}
    texts |= {".gitignore": GITIGNORE}
    is_project = (folder / "params/platforms").is_dir()
    if site_files and is_project:  # only its description of the cluster is new
        texts = {}
    texts = {name: text for name, text in texts.items() if name not in site_files}
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
    for name, text in site_files.items():
        click.echo(_write_unless_edited(folder, name, text))
    experiment = Path(FIRST_EXPERIMENT).stem if site_files else "demo"
    profile = " --profile slurm" if site_files else ""
    enter = f"  cd {folder}\n" if folder.resolve() != Path.cwd() else ""
    click.echo(
        f"{folder}: a project; try\n{enter}  commodel plan {experiment}\n"
        f"  commodel run {experiment}{profile}"
    )


def _name_schemas(text: str) -> str:
    """Return the text of a file with the place of its schema in this installation."""
    from commodel.sources import ROOT

    return text.replace(SCHEMA_COMMENT, f"$schema={ROOT}/workflow/schemas/")


def _describe_partition(partition: str) -> dict[str, str]:
    """Return the files that describe a partition of Slurm, by name."""
    from getpass import getuser

    from commodel.platforms import slurm_site
    from commodel.platforms.slurm import try_slurm
    from commodel.sources import ROOT

    site = slurm_site.read_site(partition, getuser(), slurm_site.describe_mpi(), try_slurm)

    def read(name: str) -> str:
        return (ROOT / name).read_text(encoding="utf-8")

    texts = {
        f"params/platforms/{site.name}.yaml": slurm_site.write_platform(site),
        f"{SLURM_PROFILE}/config.yaml": slurm_site.write_profile(
            site, read(f"{SLURM_PROFILE}/config.yaml")
        ),
        FIRST_EXPERIMENT: slurm_site.write_experiment(site, read(FIRST_EXPERIMENT)),
    }
    return {name: _name_schemas(text) for name, text in texts.items()}


def _write_unless_edited(folder: Path, name: str, text: str) -> str:
    """Write a file that describes a partition, and return what was done. A file that was edited is
    kept, and what would change is returned."""
    from difflib import unified_diff

    from commodel.files.atomic import write_text
    from commodel.files.safe_reading import MIB, read_bytes
    from commodel.records import compute_digest
    from commodel.sources import ROOT

    signed = f"{text}{WRITTEN_BY} {compute_digest(text)}\n"
    path = folder / name
    before = read_bytes(path, MIB, "a smaller file").decode() if path.exists() else ""
    body, _, digest = before.rpartition(f"{WRITTEN_BY} ")
    template = (ROOT / name).read_text(encoding="utf-8") if (ROOT / name).is_file() else ""
    is_template = before in (template, _name_schemas(template))
    is_own = digest.strip() == compute_digest(body)
    if before and not is_own and not is_template:
        lines = unified_diff(
            before.splitlines(), text.splitlines(), "yours", "of Slurm now", lineterm="", n=1
        )
        return "\n".join([f"{path}: edited, kept; Slurm now says:", *lines])
    if before == signed:
        return f"{path}: unchanged"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, signed)
    return f"{path}: written"


def _is_another(path: Path, text: str) -> bool:
    from commodel.files.safe_reading import MIB, read_bytes

    if not path.exists():
        return path.is_symlink()
    return path.is_dir() or read_bytes(path, MIB, "a smaller file") != text.encode()


@click.command(
    cls=Verb,
    examples=("commodel doctor", "commodel doctor --slurm"),
)
@make_option_group(
    "Cluster",
    click.option(
        "--slurm",
        "partition",
        metavar="PARTITION",
        is_flag=False,
        flag_value="",
        help="Prove by a job of two nodes in this partition, else the default one, that MPI programs start.",
    ),
    click.option(
        "--wait",
        "seconds",
        metavar="SECONDS",
        type=click.FloatRange(min=1),
        default=60.0,
        show_default="60",
        help="Cancel this job after so many seconds.",
    ),
)
@make_option_group(
    "Output",
    click.option(
        "--need",
        metavar="PROGRAM",
        help="Print nothing, and exit with code 1 if this program is missing.",
    ),
)
def doctor(partition: str | None, seconds: float, need: str | None) -> None:
    from commodel.platforms.tools import find_tool

    if need:
        raise SystemExit(0 if find_tool(need) else 1)
    from commodel.api.installation import check_slurm
    from commodel.api.installation import doctor as list_programs
    from commodel.cli._output import ProgressLine

    if partition is None:
        click.echo(list_programs().text())
        return
    line = ProgressLine(False)
    start = check_slurm(partition, seconds=seconds, progress=line.show_progress)
    line.clear()
    click.echo(start.text())
    raise SystemExit(int(start.is_wrong))


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
