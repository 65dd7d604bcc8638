"""Experiment to plan: the matrix becomes points, points and probe cases become batches, one batch one allocation."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from commodel import __version__
from commodel.errors import UserError, suggest
from commodel.files.atomic import MAX_FILE, write_text
from commodel.files.kept import keep
from commodel.files.paths import SafePath
from commodel.files.results import Results
from commodel.files.text import read_text
from commodel.models.families import family, family_names
from commodel.models.probes import probe
from commodel.models.probes.evenness import FEWEST_NODES
from commodel.patterns.identity import identified
from commodel.patterns.points import library_beside, make_point
from commodel.plan.batches import batches
from commodel.plan.config import find, load_experiment, load_platform
from commodel.plan.experiments import Block, Experiment
from commodel.plan.keeping import files_of, received, root_of
from commodel.plan.matrix import check_size, combinations, place_of
from commodel.plan.setting import setting_of
from commodel.platforms.platform import Platform
from commodel.price.papers import paper
from commodel.records import Measure, Plan, PlannedPlatform, Point

MAX_POINTS = 200_000  # of an experiment: at a second each, more than two days
PICTURE = ("nodepairs",)  # probes that the picture of a network of several levels is drawn from
EVENNESS = ("evenness",)  # probes that tell whether a network has several levels, where nobody says so
MIXTURE = ("mixture",)  # and whether families know what messages share


def make_plan(name: str, root: Path, only: str | None = None) -> Plan:
    """The plan of an experiment; `only` keeps the part that runs on one platform."""
    path = find("experiment", name, root)
    with received(path):
        return _plan(path, root, only)


def _plan(path: Path, root: Path, only: str | None) -> Plan:
    experiment = load_experiment(path)
    families = _families(experiment)
    if experiment.paper:
        _at(experiment, ("paper",), paper, experiment.paper)
    platforms: dict[str, Platform] = {}
    for block in experiment.matrix:
        wanted = experiment.block_platform(block)
        if wanted not in platforms and only in (None, wanted):
            platforms[wanted] = _platform(experiment, block, root)
    if only and not platforms:
        known = {experiment.block_platform(block) for block in experiment.matrix}
        raise UserError(f"no block of {path} runs on platform '{only}'; {suggest(only, known)}")
    points = list(islice(_points(experiment, platforms), MAX_POINTS + 1))
    if len(points) > MAX_POINTS:
        raise experiment.error(("matrix",), f"found more than {MAX_POINTS} points, wanted no more to be measured")
    if not points:
        raise experiment.error(("matrix",), "no point is left to measure")
    if experiment.library:
        for name, platform in platforms.items():
            points += [] if platform.overlay else library_beside(setting_of(platform), _on(name, points))
    points = identified(dict.fromkeys(points))
    overlays = sorted({platform.overlay for platform in platforms.values()})
    needed = {name: [probe for overlay in overlays for probe in family(name).asks(overlay)] for name in families}
    networks = [platform for platform in platforms.values() if not platform.overlay]
    further = PICTURE if any(platform.levels for platform in networks) else ()
    if any(not platform.levels and platform.nodes >= FEWEST_NODES for platform in networks):
        further += EVENNESS
    if any(platform.nodes > 1 for platform in networks):
        further += MIXTURE
    probes = _probes(experiment, families, needed, further)
    measure = Measure(**experiment.measure.model_dump())
    return Plan(
        experiment=path.stem,
        title=experiment.title or path.stem,
        digest=experiment.digest,
        seed=experiment.seed,
        families=tuple(families),
        probes={probe: tuple(name for name in families if probe in needed[name]) for probe in probes},
        measure=measure,
        platforms={name: planned(name, platform) for name, platform in platforms.items()},
        batches=tuple(
            batch
            for name, platform in platforms.items()
            for batch in batches(name, platform, experiment, _on(name, points), probes, measure)
        ),
        version=__version__,
        paper=experiment.paper or "",
        files=files_of(points, experiment.paper or "", tables=experiment.tables, speeds=experiment.speeds),
    )


def planned(name: str, platform: Platform) -> PlannedPlatform:
    """What a plan says of a platform."""
    return PlannedPlatform(
        title=platform.title or name,
        launcher=platform.launcher,
        substrate=platform.substrate,
        simulated=platform.simulated,
        digest=platform.digest,
        nodes=platform.nodes,
        cores=platform.cores,
        types=dict(platform.types),
        levels={level: tuple(column) for level, column in platform.hierarchy.settings.items()},
        container=platform.image.as_json() if platform.image else {},
    )


def _on(platform: str, points: list[Point]) -> list[Point]:
    return [point for point in points if point.platform == platform]


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


def _probes(
    experiment: Experiment, families: list[str], needed: dict[str, list[str]], further: tuple[str, ...]
) -> list[str]:
    """`auto`, alone or in a list, is the union of what the families need, and `further` ones; each is measured once."""
    auto = [*(name for entry in families for name in needed[entry]), *further]
    if experiment.probes == "auto":
        return list(dict.fromkeys(auto))
    named = {index: name for index, name in enumerate(experiment.probes) if name != "auto"}
    for index, name in named.items():
        _at(experiment, ("probes", index), probe, name)
    wanted = dict.fromkeys([*(auto if "auto" in experiment.probes else ()), *named.values()])
    for entry in families:
        if missing := set(needed[entry]) - set(wanted):
            raise experiment.error(("probes",), f"family {entry} also needs {', '.join(sorted(missing))}")
    return list(wanted)


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
        setting = setting_of(platforms[name]).for_block(combination for combination, _ in combinations(block))
        for combination, path in combinations(block):
            try:
                yield make_point(setting, combination)
            except UserError as error:
                raise block.error(place_of(block, path, error.key), error.found) from None


def write_plan(plan: Plan, name: str, root: Path) -> None:
    """Writes under results/<experiment>/ what differs from what is there: plan.json, the ids of each batch, whose age
    tells the workflow that a batch has new points, and the files that the plan was made from. `name` is what the
    experiment was called by, perhaps a path."""
    results = Results.of(root / "results" / plan.experiment)
    results.check()
    files = {results.cases(batch.name): "\n".join(batch.ids) + "\n" for batch in plan.batches}
    files |= inputs(plan, find("experiment", name, root), root, results)
    files[results.plan] = json.dumps(plan.as_json(), indent=1) + "\n"
    for path, text in files.items():
        if not path.exists() or read_text(path, MAX_FILE, "a file of ours", strict=False) != text:
            write_text(path, text)
    copies = {name: file for name, file in plan.files.items() if file.copy}
    with received(find("experiment", name, root)):
        for called, file in copies.items():
            keep(called, file, results, root_of(file))
    for path in set(results.inputs()) - set(files) - {results.copy(file.copy) for file in copies.values()}:
        path.unlink()  # of a platform, or a file, that the experiment no longer has


def inputs(plan: Plan, experiment: Path, root: Path, results: Results) -> dict[SafePath, str]:
    """The experiment and its platforms as people wrote them, with comments: the plan has only what they mean."""
    sources = {results.input("experiments", experiment.name): experiment}
    for name in plan.platforms:
        file = find("platform", name, root)
        network = load_platform(file).simgrid_file
        sources |= {results.input("platforms", path.name): path for path in (file, network) if path}
    return {place: read_text(path, MAX_FILE, "a smaller file", strict=False) for place, path in sources.items()}
