"""The survey of a network in a run: `learn_network` turns the samples of a survey into levels and plans again."""

import datetime
from dataclasses import replace
from pathlib import Path

from commodel.compare.network import Network, networks, places
from commodel.errors import UserError, suggest
from commodel.files.atomic import read_json
from commodel.files.results_folder import Results
from commodel.plan.planning import load_plan, make_plan, write_plan
from commodel.plan.surveys import LearnedNetwork, is_survey, write_network
from commodel.results.campaign import results
from commodel.results.collection import collect, summarize_raw


def learn_network(experiment: str, platform: str, only: str | None = None) -> Path:
    """Return the file of the network of a platform, learned from the survey of a run. The plan of the run is made
    again: its probes are chosen by the levels."""
    own = Results(results(experiment))
    plan = load_plan(own.plan)
    surveys = {batch.platform: batch for batch in plan.batches if is_survey(batch)}
    if platform not in surveys:
        raise UserError(f"found no survey of '{platform}' in {own.folder}; {suggest(platform, surveys)}")
    batch = surveys[platform]
    part = replace(plan, batches=(batch,))
    observations, _ = collect(part, own.all_raw, unfinished=True)
    note = own.provenance(batch.name)
    notes = {batch.name: read_json(note)} if note.exists() else {}
    found = networks(summarize_raw(observations), places(part, notes)) if len(observations) else []
    about = LearnedNetwork(
        platform=platform,
        digest=plan.platforms[platform].digest,
        experiment=plan.experiment,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        pairs=len(found[0].pairs) if found else 0,
        notes=() if found else ("the survey has no usable samples",),
    )
    path = write_network(_describe(about, found[0]) if found else about)
    write_plan(make_plan(experiment, Path.cwd(), only), experiment, Path.cwd())
    return path


def _describe(about: LearnedNetwork, network: Network) -> LearnedNetwork:
    levels = network.hierarchy.settings
    named = network.names != tuple(map(str, range(len(network.names))))
    return replace(
        about,
        hosts=network.names if named else (),
        levels={level: tuple(column) for level, column in levels.items()},
        slow=tuple(network.names[node] for node in network.distances.slow),
        notes=tuple(f"pairs of class {entry.number + 1} differ" for entry in network.distances.mixed_classes),
    )
