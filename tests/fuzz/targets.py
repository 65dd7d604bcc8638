"""The fuzzed formats by name: how inputs are generated, and the function that reads them
(`readers.py`)."""

from dataclasses import dataclass

from hypothesis import strategies as st

from commodel.files import yaml as yamltext
from commodel.fits.measured_tables import read_points
from commodel.interchange import StatedProperties, read_all_times, rules
from commodel.interchange.folders.tables import EvidenceTable
from commodel.patterns.build import complete_layout
from commodel.patterns.pattern_files import goal, goal_binary
from commodel.patterns.pattern_files.tasks import make_schedule
from commodel.patterns.points import PlatformResources
from commodel.patterns.trees.topologies import make_tree
from commodel.registry import discover
from commodel_formats import netgauge
from tests.fuzz import forms, native, overlay, readers
from tests.fuzz.folders import received_folder, received_folders
from tests.fuzz.mutation import edited, written
from tests.fuzz.readers import Run, of_file, samples
from tests.interchange.format_reading import SAMPLES
from tests.patterns.goal_files import BINARY


@dataclass(frozen=True)
class Target:
    inputs: st.SearchStrategy
    run: Run


def make_import_target(name: str) -> Target:
    entry = discover("interchange", "FORMAT")[name]
    sample = SAMPLES[name]
    stated = StatedProperties(**sample.given)
    return Target(
        edited([sample.text.encode()]),
        of_file("input", lambda path: read_all_times(entry, [path], stated)),
    )


ROWS = b"""CASE,1,0,1e-05,1e-07,1,samples,12,
CASE,1,1,1.5e-05,,1,samples,12,
CASE,2,0,2e-05,1e-07,0,samples,12,
"""
RAW = b"id,pass,sample,seconds,skew,valid,stop,of,check\n" + 4 * ROWS
TARGETS: dict[str, Target] = {
    "yaml": Target(
        st.one_of(edited(samples("params/*/*.yaml")), st.text(max_size=60).map(str.encode)),
        of_file("a.yaml", yamltext.read_yaml),
    ),
    "experiment": Target(
        edited([*samples("params/experiments/*.yaml"), forms.MATRIX.encode()]),
        of_file("e.yaml", readers.plan_experiment),
    ),
    "experiment forms": Target(forms.experiments(), of_file("e.yaml", readers.plan_experiment)),
    "platform": Target(
        edited([*samples("params/platforms/*.yaml"), *forms.PLATFORMS]), readers.read_platform
    ),
    "network": Target(edited(samples("params/platforms/*.xml")), readers.read_network),
    **{f"import {name}": make_import_target(name) for name in SAMPLES},
    "import folder": Target(
        edited([sample.text.encode() for sample in SAMPLES.values()] + forms.LOGS),
        readers.import_folder,
    ),
    "evidence table": Target(
        edited([forms.EVIDENCE]), of_file("t.csv", lambda path: EvidenceTable.read(path).rows)
    ),
    "import netgauge": Target(edited([forms.NETGAUGE]), of_file("input", netgauge.read_parameters)),
    "import taulop": Target(
        edited([forms.CHANNEL.encode(), forms.GAMMA]), readers.read_taulop_tables
    ),
    "topology": Target(written(*forms.TOPOLOGIES), readers.parse_tree_spec),
    "topology file": Target(
        edited(forms.TREES), of_file("t.top", lambda path: make_tree.__wrapped__(f"file:{path}"))
    ),
    "layout": Target(written(*forms.LAYOUTS), readers.parse_layout_spec),
    "rank file": Target(
        edited(forms.RANKS),
        of_file(
            "r.txt",
            lambda path: complete_layout.__wrapped__(
                PlatformResources.unlimited(), f"file:{path}", 4
            ),
        ),
    ),
    "processes": Target(
        edited(samples("params/layouts/fermi/M[1-4].csv")),
        of_file(
            "p.csv",
            lambda path: complete_layout.__wrapped__(
                PlatformResources("p", 64, 12), f"processes:{path}", 7
            ),
        ),
    ),
    "hosts": Target(edited([b"a\nb\nc # d\nd\n"]), of_file("h.txt", readers.read_hosts)),
    "parameters": Target(
        st.deferred(lambda: edited([*samples("params/published/*/*.yaml"), *forms.sets()])),
        of_file("p.yaml", readers.predict_with_set),
    ),
    "speeds": Target(
        edited(samples("params/speeds/*.yaml")), of_file("s.yaml", readers.partition_by_speeds)
    ),
    "partition": Target(edited(samples("params/partitions/*.csv")), readers.read_partitions),
    "plan": Target(
        st.deferred(lambda: edited([readers.make_plan_text()])),
        of_file("plan.json", readers.read_plan),
    ),
    "raw": Target(edited([RAW]), readers.read_raw_samples),
    "goal": Target(
        edited(forms.GOALS), of_file("a.goal", lambda path: make_schedule(goal.read_tasks(path)))
    ),
    "goal binary": Target(
        edited([BINARY]), of_file("a.bin", lambda path: make_schedule(goal_binary.read_tasks(path)))
    ),
    "points": Target(edited([forms.POINTS]), of_file("p.csv", read_points)),
    "rules": Target(
        edited([forms.CHOICES]),
        of_file("c.csv", lambda path: rules.format_rules(rules.read_choices(path))),
    ),
    "received folder": Target(st.deferred(received_folders), received_folder),
    "native cases": Target(
        edited([forms.CASES]), of_file("c.csv", lambda path: native.read("cases", path))
    ),
    "overlay packets": Target(st.integers(0, 1 << 48), lambda seed, _: overlay.run_mutator(seed)),
    "native partition": Target(
        edited([forms.PARTITION]), of_file("p.csv", lambda path: native.read("partition", path))
    ),
    "native schedule": Target(
        edited([forms.PLAY]), of_file("s.play", lambda path: native.read("schedule", path))
    ),
    "units": Target(written(*forms.QUANTITIES), readers.parse_quantity),
    "expression": Target(written(*forms.EXPRESSIONS), readers.evaluate_expression),
    "options": Target(
        st.tuples(
            st.sampled_from(("bcast", "alltoall", "reduce", "barrier")),
            st.lists(written("binomial", "chain:%", "knomial:%", "linear"), max_size=1).map(tuple),
            st.lists(written(*forms.TOPOLOGIES), max_size=1).map(tuple),
            st.one_of(st.none(), written("%", "%,%", "%:%:*%", "%:%:+%")),
            st.one_of(st.none(), written("%", "%KiB,%", "%:%:*%", "%:%:+%")),
            st.one_of(st.none(), written(*forms.LAYOUTS)),
        ),
        readers.expand_options,
    ),
}
