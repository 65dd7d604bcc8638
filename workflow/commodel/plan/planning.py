"""Plans: `make_plan` turns an experiment and its platforms into points, probe cases and batches.
`write_plan` stores them as plan.json, with copies of all files that the plan depends on.

A batch is one allocation. A batch that would exceed the budget is split. `load_plan` reads a plan,
which may come from an unknown source. It raises an error that names the key if an entry has another
type or form than later stages assume.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from pydantic import TypeAdapter

from commodel import __version__
from commodel.errors import UserError, locate_mistakes, make_printable, suggest_name
from commodel.extensions import find_input_reader
from commodel.files.atomic import MAX_FILE_BYTES, write_text
from commodel.files.cache import archive_input, find_input, record_input, use_archived_inputs
from commodel.files.results_folder import PLAN, Results
from commodel.files.safe_paths import NODES_SUFFIX, AnyPath, SafePath, check_inside, parse_file_path
from commodel.files.safe_reading import read_text
from commodel.files.typed_records import read_json_record
from commodel.models.families import find_family, list_family_names
from commodel.models.parameter_sets import name_published_file, read_published
from commodel.models.probes import find_probe
from commodel.models.probes.node_pairs import MIN_NODES
from commodel.patterns.layouts import drives_gpus
from commodel.patterns.operations import list_operation_files
from commodel.patterns.point_digests import add_digests
from commodel.patterns.points import PlatformResources, make_library_points, make_point
from commodel.plan.batches import PlatformPoints, make_batches
from commodel.plan.config import (
    find_config_file,
    load_experiment,
    load_named_platform,
    load_platform,
)
from commodel.plan.experiments import Block, Experiment, locate_errors
from commodel.plan.matrix import check_size, list_combinations, locate_axis
from commodel.plan.surveys import PROBE as SURVEY
from commodel.plan.surveys import list_networks_needed, needs_survey
from commodel.platforms.build import get_program_folder
from commodel.platforms.launchers import LAUNCHERS, Launcher, get_toolchain
from commodel.platforms.platform import Platform
from commodel.platforms.slurm import check_mpi_type, make_constraint
from commodel.platforms.toolchains import list_toolchains
from commodel.platforms.tools import find_build_root, find_tool
from commodel.predictions.papers import find_paper
from commodel.records import (
    ArchivedFile,
    ArchivedKind,
    Batch,
    Case,
    Measure,
    Plan,
    PlannedPlatform,
    Point,
)
from commodel.sources import ROOT


def load_resources(name: str, root: str | Path = ".") -> PlatformResources:
    """Return the nodes and cores of a platform, which is given by its name in params/ or by a
    path."""
    return make_resources(load_named_platform(name, root))


def make_resources(platform: Platform) -> PlatformResources:
    return PlatformResources(
        platform.name,
        platform.nodes,
        platform.cores,
        types=tuple(platform.types.items()),
        hosts=platform.node_names,
        substrate=platform.substrate,
        fewer_cores=tuple(platform.fewer_cores.items()),
        gpus=tuple(platform.gpus_of_types.items()),
        levels=tuple(
            (level, tuple(column)) for level, column in platform.hierarchy.group_lists.items()
        ),
        launcher=platform.launcher,
    )


PLAN_ADAPTER = TypeAdapter(Plan)
CONTAINER_KEYS = {"image", "digest", "model", "native"}


def load_plan(path: AnyPath) -> Plan:
    if not path.exists():
        raise UserError("found no plan: nothing has been run yet", file=path.parent)
    plan = read_json_record(PLAN_ADAPTER, path)
    for key, complaint in _list_contradictions(plan):
        raise UserError(complaint, file=path, key=key)
    if plan.paper:
        with locate_mistakes(path, "paper"):
            find_paper(plan.paper)
    specs: set[str] = set()
    for point in plan.points:
        specs |= {point.operation, point.topology, point.layout}
    with locate_mistakes(path):
        for spec in specs:
            check_inside(spec)
    return plan


def _list_contradictions(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield key and message of each contradiction between fields of a plan that are valid by
    themselves."""
    if plan.measure.min_samples > plan.measure.max_samples:
        yield "measure.min_samples", f"found {plan.measure.min_samples}, wanted at most max_samples"
    for name, platform in plan.platforms.items():
        if platform.container and platform.container.keys() != CONTAINER_KEYS:
            yield (
                f"platforms.{name}.container",
                f"wanted the keys {', '.join(sorted(CONTAINER_KEYS))}",
            )
    for batch in plan.batches:
        key = f"batches.{batch.name}"
        members: list[Case | Point] = [*batch.cases, *batch.points]
        if batch.platform not in plan.platforms:
            yield key, f"found no platform '{batch.platform}'"
        if not members:
            yield key, "found a batch without cases and points"
        other_platforms = [
            member.platform for member in members if member.platform != batch.platform
        ]
        if other_platforms:
            yield (
                key,
                f"found a case of platform '{make_printable(other_platforms[0], 60)}', wanted '{batch.platform}' only",
            )


def list_named_files(points: Iterable[Point]) -> Iterator[tuple[ArchivedKind, str]]:
    """Yield kind and path of each file that the points name, without duplicates."""
    points = list(points)
    kinds: dict[ArchivedKind, str] = {
        "pattern": "operation",
        "tree": "topology",
        "layout": "layout",
    }
    specs = [(kind, getattr(point, kinds[kind])) for point in points for kind in kinds]
    for kind, spec in dict.fromkeys(specs):
        path = parse_file_path(spec)
        if path:
            yield kind, NODES_SUFFIX.sub("", path) if kind == "layout" else path
    operations = dict.fromkeys(point.operation for point in points)
    partitions = chain.from_iterable(map(list_operation_files, operations))
    yield from (("partition", path) for path in dict.fromkeys(partitions))


def record_files(
    points: Iterable[Point],
    paper_name: str = "",
    *,
    tables: Iterable[str] = (),
    speeds: Iterable[str] = (),
) -> dict[str, ArchivedFile]:
    files = {path: record_input(kind, path) for kind, path in list_named_files(points)}
    files |= {path: record_input("matrix", path) for path in tables}
    for name in find_paper(paper_name).published if paper_name else ():
        file = name_published_file(name)
        files[file] = record_input("published", file, ROOT, read_published(name).source)
    for name in speeds:
        # an invalid file is refused before anything is measured
        find_input_reader("speeds")(find_input(name))
        files[name] = record_input("speeds", name)
    return files


def list_tables(experiment: str) -> list[str]:
    """Return the paths from which the tables of an experiment's matrix are read."""
    with use_received_files(Path(experiment)):
        return [str(find_input(path)) for path in load_experiment(experiment).tables]


def get_root(file: ArchivedFile) -> Path:
    """Return the folder to which a file's name is relative: the installation for published sets,
    else the working folder."""
    return ROOT if file.kind == "published" else Path()


def use_received_files(experiment: Path) -> AbstractContextManager[None]:
    """Return a context in which an experiment stored in a results folder uses the copies of its
    files in that folder. For any other experiment the context has no effect."""
    kinds = experiment.parts[-3:-1]
    folder = experiment.absolute().parents[2:3]
    if kinds != ("inputs", "experiments") or not (folder[0] / PLAN).is_file():
        return nullcontext()
    results = Results.of(folder[0])
    return use_archived_inputs(results, load_plan(results.plan).files)


MAX_POINTS = 200_000  # of an experiment; at one second each, they take more than two days
MAP_PROBES = ("nodepairs",)  # probes for the picture of a network with levels
UNIFORMITY_PROBES = ("evenness",)  # probes that find levels which the platform file does not name
CONTENTION_PROBES = ("mixture",)  # probes that find contention which models do not predict
MEMORY_PROBES = ("memory",)  # probes for the bandwidth of the memory that ranks of a node share


def make_plan(name: str, root: Path, only: str | None = None, survey: bool = True) -> Plan:
    """Return the plan of an experiment; `only` restricts it to one platform. Without `survey`,
    levels are those of platform files."""
    path = find_config_file("experiment", name, root)
    with use_received_files(path):
        return _make_plan(path, root, only, survey)


def _make_plan(path: Path, root: Path, only: str | None, survey: bool) -> Plan:
    experiment = load_experiment(path)
    survey = survey and experiment.survey and experiment.has_automatic_probes
    families = _list_families(experiment)
    if experiment.paper:
        with locate_errors(experiment, "paper"):
            find_paper(experiment.paper)
    platforms: dict[str, Platform] = {}
    for block in experiment.matrix:
        platform_name = experiment.block_platform(block)
        if platform_name not in platforms and only in (None, platform_name):
            platforms[platform_name] = _load_platform(experiment, block, root, survey)
    if only and not platforms:
        names = {experiment.block_platform(block) for block in experiment.matrix}
        raise UserError(
            f"no block of {path} runs on platform '{only}'; {suggest_name(only, names)}"
        )
    points = list(islice(_list_points(experiment, platforms), MAX_POINTS + 1))
    if len(points) > MAX_POINTS:
        raise experiment.error(
            ("matrix",), f"found more than {MAX_POINTS} points, wanted at most that many"
        )
    if not points:
        raise experiment.error(("matrix",), "no point is left to measure")
    if experiment.library:
        for name, platform in platforms.items():
            if platform.uses_mpi:
                points += make_library_points(
                    make_resources(platform), _select_platform(name, points)
                )
    points, merged_layouts = _merge_equal_placements(add_digests(dict.fromkeys(points)))
    kinds = sorted({platform.uses_mpi for platform in platforms.values()}, reverse=True)
    needed_probes: dict[str, list[str]] = {}
    for name in families:
        of_kinds = map(find_family(name).list_probes, kinds)
        needed_probes[name] = list(chain.from_iterable(of_kinds))
    networks = [platform for platform in platforms.values() if platform.uses_mpi]
    extra_probes: tuple[str, ...] = (
        MAP_PROBES if any(platform.levels for platform in networks) else ()
    )
    if any(not platform.levels and platform.nodes >= MIN_NODES for platform in networks):
        extra_probes += UNIFORMITY_PROBES
    if any(platform.nodes > 1 for platform in networks):
        extra_probes += CONTENTION_PROBES
    if any(platform.cores > 1 for platform in networks):
        extra_probes += MEMORY_PROBES
    probes = _list_probes(experiment, families, needed_probes, extra_probes)
    surveyed = {
        name
        for name, platform in platforms.items()
        if survey and needs_survey(platform, name, path.stem, root)
    }
    probes_to_run = dict.fromkeys([*([SURVEY] if surveyed else []), *probes])
    models_by_probe = {}
    for probe in probes_to_run:
        models_by_probe[probe] = tuple(name for name in families if probe in needed_probes[name])
    measure = Measure(**experiment.measure.model_dump())
    batches: list[Batch] = []
    for name, platform in platforms.items():
        wanted = PlatformPoints(
            name=name,
            platform=platform,
            points=_select_platform(name, points),
            probes=probes,
            survey=name in surveyed,
        )
        of_platform = make_batches(wanted, experiment, measure)
        _check_gpus(platform, of_platform)
        batches += of_platform
    return Plan(
        experiment=path.stem,
        title=experiment.title or path.stem,
        digest=experiment.digest,
        seed=experiment.seed,
        models=tuple(families),
        probes=models_by_probe,
        measure=measure,
        platforms={name: record_platform(name, platform) for name, platform in platforms.items()},
        batches=tuple(batches),
        version=__version__,
        paper=experiment.paper or "",
        files=record_files(
            points, experiment.paper or "", tables=experiment.tables, speeds=experiment.speeds
        ),
        merged_layouts=merged_layouts,
    )


def _merge_equal_placements(points: Iterable[Point]) -> tuple[list[Point], dict[str, str]]:
    """Return the points without those that differ from an earlier point only in the name of the
    layout, and for each omitted layout the one that is measured. Both place the same ranks on the
    same nodes."""
    points_to_measure: dict[Point, Point] = {}
    merged_layouts = {}
    for point in points:
        measured = points_to_measure.setdefault(replace(point, layout=""), point)
        if measured is not point:
            merged_layouts[point.layout] = measured.layout
    return list(points_to_measure.values()), merged_layouts


def record_platform(name: str, platform: Platform) -> PlannedPlatform:
    """Return the record of a platform in a plan."""
    return PlannedPlatform(
        title=platform.title or name,
        launcher=platform.launcher,
        substrate=platform.substrate,
        simulated=platform.simulated,
        namespaces=bool(platform.hosts and platform.hosts.namespaces),
        digest=platform.digest,
        nodes=platform.nodes,
        cores=platform.cores,
        types=dict(platform.types),
        levels={level: tuple(column) for level, column in platform.hierarchy.group_lists.items()},
        hosts=platform.node_names if platform.takes_hosts_from_job else (),
        container=platform.image.as_json() if platform.image else {},
    )


def _select_platform(platform: str, points: list[Point]) -> list[Point]:
    return [point for point in points if point.platform == platform]


def _load_platform(
    experiment: Experiment, block: Block, root: Path, use_learned_levels: bool
) -> Platform:
    name = experiment.block_platform(block)
    with locate_errors(experiment, *(block.path if block.platform else ()), "platform"):
        file = find_config_file("platform", name, root)
    platform = load_platform(file, use_learned_levels)
    if platform.image and platform.image.native:
        with locate_errors(platform, "container", "native"):
            find_config_file("platform", platform.image.native, root)
    return platform


def _list_families(experiment: Experiment) -> list[str]:
    if experiment.models == "all":
        return list_family_names()
    for index, name in enumerate(experiment.models):
        if name == "all":
            raise experiment.error(
                ("models", index), "found 'all' in a list, wanted it alone: `models: all`"
            )
        with locate_errors(experiment, "models", index):
            find_family(name)
    return list(dict.fromkeys(experiment.models))


def _list_probes(
    experiment: Experiment,
    models: list[str],
    needed: dict[str, list[str]],
    extra_probes: tuple[str, ...],
) -> list[str]:
    """Return the probes to run, each once.

    `auto`, alone or in a list, stands for all probes that the models need, and for `extra_probes`.
    """
    automatic = [*chain.from_iterable(needed[model] for model in models), *extra_probes]
    if experiment.probes == "auto":
        return list(dict.fromkeys(automatic))
    named = {index: name for index, name in enumerate(experiment.probes) if name != "auto"}
    for index, name in named.items():
        with locate_errors(experiment, "probes", index):
            find_probe(name)
    wanted = dict.fromkeys(
        [*(automatic if experiment.has_automatic_probes else ()), *named.values()]
    )
    for entry in models:
        missing = set(needed[entry]) - set(wanted)
        if missing:
            raise experiment.error(
                ("probes",), f"model {entry} also needs {', '.join(sorted(missing))}"
            )
    return list(wanted)


def _list_points(experiment: Experiment, platforms: dict[str, Platform]) -> Iterator[Point]:
    check_size(experiment)
    for block in experiment.matrix:
        name = experiment.block_platform(block)
        if name not in platforms:
            continue
        resources = make_resources(platforms[name]).for_block(
            combination for combination, _ in list_combinations(block)
        )
        for combination, path in list_combinations(block):
            try:
                yield make_point(resources, combination)
            except UserError as error:
                raise block.error(locate_axis(block, path, error.key), error.found) from None


def write_plan(plan: Plan, name: str, root: Path) -> None:
    """Write the plan and its inputs into results/<experiment>/. Files that have not changed keep
    their age.

    They are plan.json, the ids of each batch, and copies of the plan's input files. By the age of
    the ids, the workflow detects that a batch has new points. `name` is the name or the path of the
    experiment.
    """
    results = Results.of(root / "results" / plan.experiment)
    results.check()
    files = _list_plan_files(plan, name, root)
    for path, text in _select_changed(files).items():
        write_text(path, text)
    copies = {path: file for path, file in plan.files.items() if file.copy}
    with use_received_files(find_config_file("experiment", name, root)):
        for name_in_plan, file in copies.items():
            archive_input(name_in_plan, file, results, get_root(file))
    for path in (
        set(results.inputs()) - set(files) - {results.copy(file.copy) for file in copies.values()}
    ):
        path.unlink()  # input of a platform, or a file, that is no longer in the experiment


def write_plan_preview(plan: Plan, name: str, root: Path, folder: Path) -> dict[str, str]:
    """Write the files that `write_plan` would write or change into another folder, and return their
    paths there by their absolute paths in the results."""
    previews = {}
    changed = _select_changed(_list_plan_files(plan, name, root))
    for number, (path, text) in enumerate(changed.items()):
        preview = folder / f"{number}-{path.name}"
        write_text(preview, text)
        previews[os.path.abspath(str(path))] = str(preview)
    return previews


def _list_plan_files(plan: Plan, name: str, root: Path) -> dict[SafePath, str]:
    """Return the texts of a plan's files in results/<experiment>/: plan.json, the ids of batches,
    and inputs."""
    results = Results.of(root / "results" / plan.experiment)
    files = {results.cases(batch.name): "\n".join(batch.ids) + "\n" for batch in plan.batches}
    experiment = find_config_file("experiment", name, root)
    inputs = {results.input("experiments", experiment.name): experiment}
    for platform in plan.platforms:
        platform_file = find_config_file("platform", platform, root)
        network = load_platform(platform_file).simgrid_file
        inputs |= {
            results.input("platforms", path.name): path for path in (platform_file, network) if path
        }
    files |= {
        stored: read_text(path, MAX_FILE_BYTES, "a smaller file", strict=False)
        for stored, path in inputs.items()
    }
    files[results.plan] = json.dumps(plan.as_json(), indent=1) + "\n"
    return files


def _select_changed(files: Mapping[SafePath, str]) -> dict[SafePath, str]:
    """Return those files that do not exist, or have another text."""
    return {
        path: text
        for path, text in files.items()
        if not path.exists()
        or read_text(path, MAX_FILE_BYTES, "a file written by commodel", strict=False) != text
    }


def find_constraint(plan: Plan, batch: str) -> str:
    """Return the features that the nodes of a batch's Slurm job must have; empty if all nodes are
    equal. Slurm refuses features with counts for nodes that are requested by name."""
    wanted = plan.batch(batch)
    return (
        ""
        if find_nodelist(plan, batch)
        else make_constraint(load_named_platform(wanted.platform), wanted.nodes)
    )


def find_gres(plan: Plan, batch: str) -> str:
    """Return the generic resource that a batch's Slurm job requests, such as gpu:2; empty if no
    process of its layouts drives a GPU, or if the platform file states no number."""
    wanted = plan.batch(batch)
    gpus = load_named_platform(wanted.platform).list_gpus(range(wanted.nodes))
    layouts = {(point.layout, point.ranks) for point in wanted.points}
    if not gpus or not any(drives_gpus(*layout) for layout in layouts):
        return ""
    return f"gpu:{min(gpus)}"


def _check_gpus(platform: Platform, batches: Iterable[Batch]) -> None:
    """Refuse batches with processes that drive GPUs if their Slurm job also has nodes without
    GPUs."""
    for batch in batches:
        gpus = platform.list_gpus(range(batch.nodes))
        layouts = [point.layout for point in batch.points if drives_gpus(point.layout, point.ranks)]
        if 0 in gpus and layouts:
            beside = " beside nodes with GPUs" if any(gpus) else ""
            message = (
                f"found no GPU on node {gpus.index(0)} of the job, which {layouts[0]} "
                f"needs{beside}; Slurm gives GPUs to all nodes of a job or to none: use "
                "launcher hosts in an allocation of your own"
            )
            raise platform.error(("slurm", "gpus"), message)


def find_nodelist(plan: Plan, name: str) -> str:
    """Return the surveyed hosts that a batch's Slurm job requests; empty if any will do. The survey
    of a run may find them after the plan was made."""
    batch = plan.batch(name)
    hosts = (
        load_named_platform(batch.platform).node_names if list_networks_needed(plan, name) else ()
    )
    return ",".join(hosts[: batch.nodes])


def find_launcher(plan: Plan, batch: str) -> Launcher:
    return LAUNCHERS[plan.platforms[plan.batch(batch).platform].launcher]


def runs_alone(plan: Plan, batch: str, is_started_here: bool) -> bool:
    """Return whether no other batch may run at the same time: its ranks use this machine, or the
    allocation of this process, in which it is started."""
    launcher = find_launcher(plan, batch)
    return launcher.busy or (launcher.in_job and is_started_here)


def require_mpi_types(plan: Plan, batches: Iterable[Batch]) -> None:
    """Refuse platforms whose MPI plug-in Slurm lacks, before jobs are submitted for these
    batches."""
    names = {batch.platform: None for batch in batches if find_launcher(plan, batch.name).in_job}
    for name in names:
        check_mpi_type(load_named_platform(name))


def find_programs_file(plan: Plan, batch: str) -> str:
    """Return a file whose age is that of a batch's programs: the platform's image, else the file
    that their build writes."""
    platform = load_named_platform(plan.batch(batch).platform)
    if platform.image:
        return str(platform.image.file)
    return str(get_program_folder(find_build_root(), get_toolchain(platform)) / "built")


def find_missing_compiler(plan: Plan, batch: str) -> str:
    """Return the compiler that is needed for the programs of a batch and not installed; empty if
    there is none."""
    if Path(find_programs_file(plan, batch)).exists():
        return ""
    compiler = list_toolchains()[
        get_toolchain(load_named_platform(plan.batch(batch).platform))
    ].compiler
    return "" if find_tool(compiler) else compiler
