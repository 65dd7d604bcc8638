"""The survey of a network in a run: `learn_network` turns the samples of a survey into levels and
plans again."""

import datetime
from dataclasses import replace
from pathlib import Path

from commodel.compare.network import find_recorded_nodes, make_networks
from commodel.errors import UserError, suggest_name
from commodel.files.atomic import read_json, write_text
from commodel.files.results_folder import Results
from commodel.plan.planning import load_plan, make_plan, write_plan
from commodel.plan.surveys import LearnedNetwork, is_survey, write_network
from commodel.records import Batch, Plan
from commodel.results.campaign import find_results
from commodel.results.collection import collect_samples, summarize_raw


def learn_network(experiment: str, platform: str, only: str | None = None) -> Path:
    """Return the file of the network of a platform, learned from the survey of a run. The plan of
    the run is made again: its probes are chosen by the levels."""
    results = Results(find_results(experiment))
    plan = load_plan(results.plan)
    surveys = {batch.platform: batch for batch in plan.batches if is_survey(batch)}
    if platform not in surveys:
        raise UserError(
            f"found no survey of '{platform}' in {results.folder}; {suggest_name(platform, surveys)}"
        )
    path = write_network(find_network(plan, surveys[platform], results))
    write_text(results.learned(surveys[platform].name), path.read_text(encoding="utf-8"))
    write_plan(make_plan(experiment, Path.cwd(), only), experiment, Path.cwd())
    return path


def find_network(plan: Plan, survey: Batch, results: Results) -> LearnedNetwork:
    """Return the network that the samples of a survey show."""
    survey_plan = replace(plan, batches=(survey,))
    observations, _ = collect_samples(survey_plan, results.all_raw, unfinished=True)
    note = results.provenance(survey.name)
    notes = {survey.name: read_json(note)} if note.exists() else {}
    networks = (
        make_networks(summarize_raw(observations), find_recorded_nodes(survey_plan, notes))
        if len(observations)
        else []
    )
    learned = LearnedNetwork(
        platform=survey.platform,
        digest=plan.platforms[survey.platform].digest,
        experiment=plan.experiment,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        pairs=0,
        notes=("the survey has no usable samples",),
    )
    if not networks:
        return learned
    network = networks[0]
    has_names = network.names != tuple(map(str, range(len(network.names))))
    return replace(
        learned,
        pairs=len(network.pairs),
        hosts=network.names if has_names else (),
        levels={
            level: tuple(column)
            for level, column in network.distances.hierarchy.group_lists.items()
        },
        slow=tuple(network.names[node] for node in network.distances.slow),
        notes=(
            *((f"the nodes form a {network.distances.torus}",) if network.distances.torus else ()),
            *(
                f"pairs of class {mixed.number + 1} differ"
                for mixed in network.distances.mixed_classes
            ),
        ),
    )
