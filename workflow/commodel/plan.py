"""Experiment to plan: the matrix becomes points, points and probe cases become batches, one batch one allocation."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from commodel import __version__
from commodel.allocation import constraint
from commodel.batches import batches
from commodel.build import programs
from commodel.config import find, load_experiment, load_platform
from commodel.errors import UserError
from commodel.experiments import Block, Experiment
from commodel.families import family, family_names
from commodel.identity import identified
from commodel.launchers import Launcher, launcher
from commodel.matrix import check_size, combinations, place_of
from commodel.planfile import plan_of
from commodel.platforms import Platform
from commodel.points import Setting, library_beside, make_point
from commodel.probes import probe
from commodel.projectfiles import check_inside
from commodel.records import Batch, Plan, Point
from commodel.results import Results
from commodel.safepaths import AnyPath, SafePath
from commodel.tables import MAX_FILE, read_json, write_text
from commodel.textfiles import read_text
from commodel.toolchain import ROOT

MAX_POINTS = 200_000  # of an experiment: at a second each, more than two days


def make_plan(name: str, root: Path, only: str | None = None) -> Plan:
    """The plan of an experiment; `only` keeps the part that runs on one platform."""
    path = find("experiment", name, root)
    experiment = load_experiment(path)
    families = _families(experiment)
    platforms: dict[str, Platform] = {}
    for block in experiment.matrix:
        wanted = experiment.block_platform(block)
        if wanted not in platforms and only in (None, wanted):
            platforms[wanted] = _platform(experiment, block, root)
    if only and not platforms:
        raise UserError(f"no block of {path} runs on platform '{only}'")
    points = list(islice(_points(experiment, platforms), MAX_POINTS + 1))
    if len(points) > MAX_POINTS:
        raise experiment.error(("matrix",), f"found more than {MAX_POINTS} points, wanted no more to be measured")
    if not points:
        raise experiment.error(("matrix",), "no point is left to measure")
    if experiment.library:
        for name, platform in platforms.items():
            mine = [point for point in points if point.platform == name]
            points += library_beside(Setting.of(name, platform), mine)
    points = identified(dict.fromkeys(points))
    probes = _probes(experiment, families)
    measure = experiment.measure.model_dump()
    found: list[Batch] = []
    for setting, platform in platforms.items():
        mine = [point for point in points if point.platform == setting]
        found += batches(setting, platform, experiment, mine, probes, measure)
    return Plan(
        experiment=path.stem,
        title=experiment.title or path.stem,
        digest=experiment.digest,
        seed=experiment.seed,
        families=tuple(families),
        probes={name: tuple(entry for entry in families if name in family(entry).probes) for name in probes},
        measure=measure,
        platforms={
            setting: {
                "file": str(find("platform", setting, root)),
                "title": platform.title or setting,
                "launcher": platform.launcher,
                "simulated": platform.simulated,
                "digest": platform.digest,
                "nodes": platform.nodes,
                "cores": platform.cores,
                "types": dict(platform.types),
                "container": platform.image.as_json() if platform.image else {},
            }
            for setting, platform in platforms.items()
        },
        batches=tuple(found),
        version=__version__,
    )


def _platform(experiment: Experiment, block: Block, root: Path) -> Platform:
    name = experiment.block_platform(block)
    try:
        file = find("platform", name, root)
    except UserError as error:
        path = (*block.path, "platform") if block.platform else ("platform",)
        raise experiment.error(path, error.message) from None
    platform = load_platform(file)
    if platform.image and platform.image.native:
        try:
            find("platform", platform.image.native, root)
        except UserError as error:
            raise platform.error(("container", "native"), error.message) from None
    return platform


def _families(experiment: Experiment) -> list[str]:
    if experiment.families == "all":
        return family_names()
    for index, name in enumerate(experiment.families):
        if name == "all":
            raise experiment.error(("families", index), "found 'all' in a list, wanted it alone: `families: all`")
        _at(experiment, ("families", index), family, name)
    return list(dict.fromkeys(experiment.families))


def _probes(experiment: Experiment, families: list[str]) -> list[str]:
    """`auto` is the union of what the families need; each is measured once."""
    if experiment.probes == "auto":
        return list(dict.fromkeys(name for entry in families for name in family(entry).probes))
    for index, name in enumerate(experiment.probes):
        _at(experiment, ("probes", index), probe, name)
    for entry in families:
        if missing := set(family(entry).probes) - set(experiment.probes):
            raise experiment.error(("probes",), f"family {entry} also needs {', '.join(sorted(missing))}")
    return list(dict.fromkeys(experiment.probes))


def _at(experiment: Experiment, path: tuple, check, *arguments):
    """Runs a check; its UserError gains the place in the experiment's file."""
    try:
        return check(*arguments)
    except UserError as error:
        raise experiment.error(path, error.message) from None


def _points(experiment: Experiment, platforms: dict[str, Platform]) -> Iterator[Point]:
    check_size(experiment)
    for block in experiment.matrix:
        name = experiment.block_platform(block)
        if name not in platforms:
            continue
        setting = Setting.of(name, platforms[name])
        setting = setting.for_block(combination for combination, _ in combinations(block))
        for combination, path in combinations(block):
            try:
                yield make_point(setting, combination)
            except UserError as error:
                raise experiment.error(place_of(block, path, error.key), error.found) from None


def write_plan(plan: Plan, name: str, root: Path) -> None:
    """Writes under results/<experiment>/ what differs from what is there: plan.json, the ids of each batch, whose age
    tells the workflow that a batch has new points, and the files that the plan was made from. `name` is what the
    experiment was called by, perhaps a path."""
    results = Results.of(root / "results" / plan.experiment)
    results.check()
    files = {results.cases(batch.name): "\n".join(batch.ids) + "\n" for batch in plan.batches}
    files |= inputs(plan, find("experiment", name, root), results)
    files[results.plan] = json.dumps(plan.as_json(), indent=1) + "\n"
    for path, text in files.items():
        if not path.exists() or read_text(path, MAX_FILE, "a file of ours", strict=False) != text:
            write_text(path, text)
    for path in set(results.inputs()) - set(files):
        path.unlink()  # of a platform that the experiment no longer has


def inputs(plan: Plan, experiment: Path, results: Results) -> dict[SafePath, str]:
    """The experiment and its platforms as people wrote them, with comments: the plan has only what they mean."""
    sources = {results.input("experiments", experiment.name): experiment}
    for settings in plan.platforms.values():
        file = Path(settings["file"])
        network = load_platform(file).simgrid_file
        sources |= {results.input("platforms", path.name): path for path in (file, network) if path}
    return {place: read_text(path, MAX_FILE, "a smaller file", strict=False) for place, path in sources.items()}


def load_plan(path: AnyPath) -> Plan:
    try:
        plan = plan_of(read_json(path))
        for spec in {name for point in plan.points for name in (point.topology, point.layout)}:
            check_inside(spec)
        return plan
    except UserError as error:
        raise UserError(error.message.removeprefix(f"{path}: "), file=path) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"not a plan of this version of commodel: {error!r}", file=path) from None


def constraint_of(plan: Plan, batch: str) -> str:
    """Which features the nodes of a batch's Slurm job must have; nothing where nodes are alike."""
    wanted = plan.batch(batch)
    return constraint(load_platform(plan.platforms[wanted.platform]["file"]), wanted.nodes)


def launcher_of(plan: Plan, batch: str) -> Launcher:
    return launcher(plan.platforms[plan.batch(batch).platform]["launcher"])


def programs_of(plan: Plan, batch: str) -> str:
    """The file whose age is that of the programs of a batch: the platform's image, else the mark of their build."""
    platform = load_platform(plan.platforms[plan.batch(batch).platform]["file"])
    return str(platform.image.file if platform.image else programs(ROOT, launcher_of(plan, batch).toolchain) / "built")
