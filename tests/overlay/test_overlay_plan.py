"""Plans on an overlay network: names of operations and trees, refused settings, and probes."""

import pytest

from commodel.api.calibration import calibrate
from commodel.errors import UserError
from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.libraries import apply_substrate
from commodel.patterns.points import PlatformResources, make_point
from commodel.plan.config import load_platform
from commodel.plan.plan_tables import summarize_plan
from commodel.plan.planning import make_plan
from tests.refusals import catch_error_message

OVERLAY = "launcher: local\nsubstrate: overlay\nnodes: 1\ncores: 64\n"
MPI = "launcher: slurm\nnodes: 32\ncores: 16\n"
RESOURCES = PlatformResources("o", 1, 64, substrate="overlay")


@pytest.fixture
def planned(tmp_path):
    """Return planned(matrix, platform, families), which makes the plan of an experiment."""

    def plan(matrix, platform=OVERLAY, models="[tan, logp]"):
        for folder in ("platforms", "experiments"):
            (tmp_path / "params" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "params/platforms/o.yaml").write_text(platform)
        text = f"platform: o\nmodels: {models}\nmatrix:\n{matrix}\n"
        (tmp_path / "params/experiments/e.yaml").write_text(text)
        return make_plan("e", tmp_path)

    return plan


def point(operation, **more):
    return make_point(
        RESOURCES, {"operation": operation, "topology": "kary:2^3", "bytes": 8} | more
    )


@pytest.mark.parametrize(
    ("written", "operation", "waves"),
    [
        ("reduce", "reduce", 1),
        ("overlay-reduce", "reduce", 1),
        ("overlay-broadcast", "bcast", 1),
        ("overlay-throughput", "reduce", 50),
        ("overlay-reduce:mode=waves:filter=sum", "reduce", 1),
        (
            "reduce:filter=max:mode=timed:period=5000us",
            "reduce:filter=max:mode=timed:period=5000us",
            1,
        ),
        ("reduce:period=0.01s:mode=timed", "reduce:mode=timed", 1),
        ("reduce:mode=synchronous:compute=1ms", "reduce:compute=1000us:mode=synchronous", 1),
        ("overlay-throughput:compute=1ms", "reduce:compute=1000us", 50),
        ("overlay-skew:mode=tree", "overlay-skew", 1),
        ("overlay-skew:mode=direct-error", "overlay-skew:mode=direct-error", 1),
        ("overlay-classes:mode=all", "overlay-classes:mode=all", 1),
    ],
)
def test_overlay_operations_are_normalized_to_one_spelling(written, operation, waves):
    normalized = point(written)
    assert (normalized.operation, normalized.waves) == (operation, waves)
    assert point(normalized.operation, waves=normalized.waves) == normalized
    assert point("overlay-throughput", waves=7).waves == 7


@pytest.mark.parametrize(
    ("operation", "more", "key", "complaint"),
    [
        (
            "bcast",
            {"algorithm": "binomial", "topology": ""},
            "algorithm",
            "an overlay network has no algorithms",
        ),
        (
            "reduce",
            {"algorithm": "library", "topology": ""},
            "algorithm",
            "an overlay network has no algorithms",
        ),
        ("reduce", {"topology": ""}, "operation", "on an overlay network reduce needs a topology"),
        (
            "gather",
            {},
            "operation",
            "found 'gather', but an overlay network runs bcast, overlay-classes, ",
        ),
        ("file:x.csv", {}, "operation", "found 'file:x.csv', but an overlay network runs bcast"),
        ("reduce:filter=bin", {}, "operation", "filter: found 'bin', wanted sum, min"),
        ("reduce:filter=sum:compute=1ms", {}, "operation", "found compute and filter"),
        ("reduce:compute=1ms", {}, "operation", "half a round trip with half of the computation"),
        ("reduce:compute=2min", {}, "operation", "wanted at most 1 s"),
        ("reduce:compute=5", {}, "operation", "wanted a unit with it"),
        ("reduce:period=1ms", {}, "operation", "which only mode=timed has"),
        ("reduce:mode=timed", {"waves": 5}, "waves", "mode=timed does not have"),
        ("overlay-startup", {"waves": 5}, "waves", "overlay-startup does not have"),
        ("bcast:mode=timed", {}, "operation", "bcast takes no parameters"),
        ("reduce", {"topology": "flat:64"}, "topology", "65 ranks"),
    ],
)
def test_an_unsupported_overlay_point_is_refused_in_one_line(operation, more, key, complaint):
    with pytest.raises(UserError) as refused:
        point(operation, **more)
    assert complaint in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.key == key


@pytest.mark.parametrize(
    ("operation", "complaint"),
    [
        (
            "overlay-reduce",
            "found 'overlay-reduce', which only a platform with substrate: overlay has",
        ),
        ("overlay-throughput", "found 'overlay-throughput', which only"),
        ("overlay-startup", "found 'overlay-startup', which only"),
        ("reduce:mode=waves", "found mode, which only"),
        ("reduce:filter=sum", "found filter, which only"),
    ],
)
def test_overlay_only_operations_are_refused_on_an_mpi_platform(planned, operation, complaint):
    matrix = f'  - axes: {{operation: ["{operation}"], topology: "flat:4", bytes: 8}}'
    with pytest.raises(UserError, match=rf"e.yaml:4: matrix\[0\].axes.operation: {complaint}"):
        planned(matrix, MPI)


def test_without_a_platform_both_are_known():
    combination = {"operation": "overlay-throughput", "topology": "flat:4", "bytes": 8}
    assert apply_substrate("", combination)["waves"] == 50
    made = make_point(PlatformResources.unlimited(), combination)
    assert (made.operation, len(build_schedule(made).src)) == ("reduce", 4)


def test_operations_without_a_schedule_are_not_predictable():
    assert point("reduce").predictable
    assert point("reduce:mode=synchronous").predictable
    for name in (
        "overlay-startup",
        "overlay-skew",
        "overlay-classes:mode=all",
        "reduce:filter=none",
        "reduce:compute=1ms:mode=timed",
    ):
        measured_only = point(name)
        assert not measured_only.predictable
        with pytest.raises(UserError, match="is measured, not predicted or drawn"):
            build_schedule(measured_only)


def test_the_plan_of_an_overlay(planned):
    matrix = (
        '  - axes: {operation: [reduce, bcast, overlay-startup], topology: ["flat:4", '
        '"kary:2^2"], bytes: 8}'
    )
    plan = planned(matrix, models="[tan, logp, loggp]")
    assert len(plan.points) == 6  # no library beside them
    assert plan.platforms["o"].substrate == "overlay"
    assert len({made.id for made in plan.points}) == 6
    cases = [case for batch in plan.batches for case in batch.cases]
    assert {case.probe for case in cases} == {"pingpong", "chain", "fan", "wave"}
    assert {case.settings["direction"] for case in cases if case.probe == "fan"} == {"in"}
    # that it is fitted from there, for want of its own
    assert plan.probes["chain"] == ("tan", "logp")
    assert (
        "platform o lacks the nodes or cores for probes prtt, work: loggp may lack data there"
        in summarize_plan(plan)
    )


def test_ids_of_measured_only_points_depend_on_the_tree(planned, tmp_path):
    matrix = '  - axes: {operation: overlay-startup, topology: ["flat:4", "flat:5", "kary:2^2"]}'
    assert len({made.id for made in planned(matrix).points}) == 3
    assert [made.id for made in planned(matrix).points] == [
        made.id for made in planned(matrix).points
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (OVERLAY.replace("overlay", "tcp"), "2: substrate: found 'tcp'"),
        (
            OVERLAY.replace("local\nsubstrate: overlay", "slurm\nsubstrate: mrnet"),
            "2: substrate: found 'mrnet', which launcher 'slurm' does not start; wanted 'local'",
        ),
        (
            "launcher: simgrid\nsubstrate: overlay\nnodes: 4\ncores: 1\nsimgrid: {file: net.xml}\n",
            "2: substrate: found 'overlay', which no simulator runs",
        ),
        (
            f"{OVERLAY}container: {{image: a.sif}}\n",
            "5: container: found a section that substrate 'overlay' does not",
        ),
    ],
)
def test_a_platform_file_with_an_unsupported_substrate_is_refused(tmp_path, text, complaint):
    (tmp_path / "o.yaml").write_text(text)
    assert catch_error_message(load_platform, tmp_path / "o.yaml").startswith(
        f"{tmp_path}/o.yaml:{complaint}"
    )


def test_naming_the_default_mpi_substrate_does_not_change_the_platform_digest(tmp_path):
    digests = []
    for number, text in enumerate(
        (MPI, f"substrate: mpi\n{MPI}", MPI.replace("slurm", "local").replace("32", "1"), OVERLAY)
    ):
        (tmp_path / f"p{number}.yaml").write_text(text)
        digests.append(load_platform(tmp_path / f"p{number}.yaml").digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_only_mpi_is_calibrated(tmp_path):
    write_parameters(
        tmp_path / "hockney.yaml", make_given_set("hockney", ["alpha=2us", "beta=1ns/B"])
    )
    with pytest.raises(
        UserError, match="platform 'local-overlay' has substrate 'overlay': only MPI is calibrated"
    ):
        calibrate("local-overlay", parameters=tmp_path / "hockney.yaml")
