"""A project from Python: `init` makes its folder, and describes where it will measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from getpass import getuser
from pathlib import Path

from commodel.api.result import Answer
from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.safe_reading import MIB, read_bytes
from commodel.platforms import slurm_site
from commodel.platforms.host_site import Description, describe_here, describe_hosts
from commodel.platforms.slurm import try_slurm
from commodel.records import compute_digest
from commodel.sources import ROOT

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
WRITTEN_BY = "# Written by commodel init, which writes it again until it is edited:"
# digests of these files as they are in a fresh clone, where `--slurm` writes over them
SHIPPED = {f"{SLURM_PROFILE}/config.yaml": "66a03b442b79", FIRST_EXPERIMENT: "6fbdced0951f"}
GITIGNORE = "/.snakemake/\n/build/\n/reports/\n/results/\n"


@dataclass(frozen=True)
class SiteFiles:
    """The files that describe where a project measures, by name, and how to run there."""

    texts: dict[str, str]
    experiment: str
    options: str = ""  # of `commodel run`
    lines: tuple[str, ...] = ()  # on what was found


@dataclass(frozen=True, eq=False, repr=False)
class Project(Answer):
    """The files of a new project: a row for each that describes where it measures, with what was
    done with it."""

    folder: Path
    commands: tuple[str, ...]  # that come next
    details: tuple[str, ...] = ()  # what was found, and differences of edited files

    def text(self, verbose: bool = True) -> str:
        """Return what was found and written, and the next commands."""
        commands = [f"  {command}" for command in self.commands]
        return "\n".join([*self.details, self.sentence, *commands])


def init(
    folder: str | Path,
    *,
    slurm: str | None = None,
    here: bool = False,
    hosts: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Project:
    """Make a project with experiments, platforms and profiles, or describe a place in an existing
    one.

    `slurm` is a partition, or an empty text for the default one; `here` describes the allocation of
    this process, else this machine; `hosts` are names `a,b,c` that ssh reaches. Each writes a
    platform and a first experiment on it. An edited file is kept; the result has the difference.

    >>> init("mycluster", here=True).commands  # doctest: +SKIP
    """
    folder = Path(folder)
    given = [name for name, is_given in _list_places(slurm, here, hosts) if is_given]
    if len(given) > 1:
        raise UserError(f"found --{given[0]} and --{given[1]}, wanted one of them")
    file = next((path for path in (folder, *folder.parents) if path.is_file()), None)
    if file:
        raise UserError("found a file, wanted a folder, or a name for a new one", file=file)
    site = SiteFiles({}, "demo")
    if slurm is not None:
        site = _describe_partition(slurm)
    elif here:
        site = _describe_place(describe_here(slurm_site.describe_mpi(), try_slurm))
    elif hosts is not None:
        show = progress or (lambda text: None)
        site = _describe_place(describe_hosts(hosts, slurm_site.describe_mpi(), folder, show))
    written = _write_project(folder, site)
    done = [_write_unless_edited(folder, name, text) for name, text in site.texts.items()]
    rows = [{"file": file, "done": what} for file, what, _ in done] or written
    details = [*site.lines]
    for name, what, difference in done:
        details += [f"{name}: {what}", *difference]
    enter = [f"cd {folder}"] if folder.resolve() != Path.cwd() else []
    check = [] if slurm is None else ["commodel doctor --slurm"]
    commands = [*enter, *check, f"commodel plan {site.experiment}"]
    commands.append(f"commodel run {site.experiment}{site.options}")
    provenance = [{"source": str(ROOT)}]
    sentence = f"{folder}: a project; try"
    return Project(rows, sentence, [], provenance, folder, tuple(commands), tuple(details))


def _list_places(slurm: str | None, here: bool, hosts: str | None) -> list[tuple[str, bool]]:
    return [("slurm", slurm is not None), ("here", here), ("hosts", hosts is not None)]


def _write_project(folder: Path, site: SiteFiles) -> list[dict[str, str]]:
    """Write the files of a new project but those of the site, and return a row for each. In an
    existing project, only its description of a site is new."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in COPIED_FILES}
    texts = {name: _name_schemas(text, folder) for name, text in texts.items()}
    texts |= {".gitignore": GITIGNORE}
    if site.texts and (folder / "params/platforms").is_dir():
        texts = {}
    texts = {name: text for name, text in texts.items() if name not in site.texts}
    # if it exists, snakedeploy created the project
    if not (folder / "workflow" / "Snakefile").exists():
        texts["Snakefile"] = SNAKEFILE
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
    return [{"file": str(folder / name), "done": "written"} for name in texts]


def _name_schemas(text: str, folder: Path) -> str:
    """Return the text of a file of a project with the place of its schema in this installation. In
    the clone itself, it stays relative."""
    if _is_clone(folder):
        return text
    return text.replace(SCHEMA_COMMENT, f"$schema={ROOT}/workflow/schemas/")


def _is_clone(folder: Path) -> bool:
    """Return whether a project is the folder of commodel itself, whose files are the templates."""
    return folder.resolve() == ROOT.resolve()


def _read_template(name: str) -> str:
    """Return the text of a file of commodel, without the signature of an earlier `init` there."""
    return _split_signature((ROOT / name).read_text(encoding="utf-8"))[0]


def _split_signature(text: str) -> tuple[str, str]:
    """Return the text before the line that `init` writes below it, and the digest in that line."""
    body, signature, digest = text.rpartition(f"{WRITTEN_BY} ")
    return (body, digest.strip()) if signature else (text, "")


def _describe_partition(partition: str) -> SiteFiles:
    """Return the files that describe a partition of Slurm."""
    site = slurm_site.read_site(partition, getuser(), slurm_site.describe_mpi(), try_slurm)
    profile = f"{SLURM_PROFILE}/config.yaml"
    experiment = slurm_site.write_experiment(
        site.name, site.nodes, site.fewest_cores, _read_template(FIRST_EXPERIMENT)
    )
    texts = {
        f"params/platforms/{site.name}.yaml": slurm_site.write_platform(site),
        profile: slurm_site.write_profile(site, _read_template(profile)),
        FIRST_EXPERIMENT: experiment,
    }
    return SiteFiles(texts, Path(FIRST_EXPERIMENT).stem, " --profile slurm")


def _describe_place(place: Description) -> SiteFiles:
    """Return the files of a place without a queue: its platform, and an experiment of its name."""
    template = _read_template(FIRST_EXPERIMENT)
    experiment = slurm_site.write_experiment(place.name, place.nodes, place.cores, template)
    title = f"title: First look at the platform {place.name}"
    experiment = experiment.replace("title: First look at a cluster", title)
    # its first lines are a comment on a cluster
    experiment = "\n".join(line for line in experiment.splitlines() if "# A first look" not in line)
    texts = {
        f"params/platforms/{place.name}.yaml": place.text,
        f"params/experiments/{place.name}.yaml": experiment + "\n",
    }
    return SiteFiles(texts, place.name, lines=tuple(place.lines))


def _write_unless_edited(folder: Path, name: str, text: str) -> tuple[str, str, list[str]]:
    """Write a file that describes a place. Return its path, what was done, and for an edited file,
    which is kept, what would change."""
    text = _name_schemas(text, folder)
    signed = f"{text}{WRITTEN_BY} {compute_digest(text)}\n"
    path = folder / name
    before = read_bytes(path, MIB, "a smaller file").decode() if path.exists() else ""
    body, digest = _split_signature(before)
    is_own = digest == compute_digest(body)
    if before and not is_own and not _is_template(folder, name, before):
        lines = list(
            unified_diff(
                body.splitlines(), text.splitlines(), "yours", "found now", lineterm="", n=1
            )
        )
        return str(path), "edited, kept" + ("; what is found now:" if lines else ""), lines
    if before == signed:
        return str(path), "unchanged", []
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, signed)
    return str(path), "written", []


def _is_template(folder: Path, name: str, text: str) -> bool:
    """Return whether the text of a file is that of commodel's own file of this name."""
    if _is_clone(folder):
        return compute_digest(text) == SHIPPED.get(name)
    template = _read_template(name) if (ROOT / name).is_file() else ""
    return text in (template, _name_schemas(template, folder))


def _is_another(path: Path, text: str) -> bool:
    if not path.exists():
        return path.is_symlink()
    return path.is_dir() or read_bytes(path, MIB, "a smaller file") != text.encode()
