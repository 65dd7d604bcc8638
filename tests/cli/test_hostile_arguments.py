"""Arguments of verbs with arbitrary names: each is refused in one line with exit code 2, and no
file of such a name is made."""

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.platforms.tools import ROOT

HOSTILE = {
    "two lines": "a\nb",
    "out of the folder": "../../etc/passwd",
    "an option": "-x",
    "a colour": "\x1b[31mred",
    "endless": "a" * 5000,
    "a command": "$(touch x); touch x",
    "a formula": "=1+1",
    "not UTF-8": "a\udcff",
    "nothing": "",
    "a folder": ".",
    "a device": "/dev/zero",
    "a device.yaml": "/dev/zero.yaml",
}
PUBLISHED = ROOT / "params/published/lop/infiniband-send.yaml"
VERBS = {
    "plan": ["plan", "--", "NAME"],
    "plan --only": ["plan", "demo", "--only=NAME"],
    "run": ["run", "--", "NAME"],
    "price": ["predict", "matrix", "--params=p.yaml", "--out=p.csv", "--", "NAME"],
    "measure": ["measure", "--in=NAME", "--batch=b", "--out=o"],
    "collect": ["collect", "--in=NAME", "--out=o.csv"],
    "fit": ["fit", "table", "p.csv", "--model=NAME"],
    "fit table": ["fit", "table", "--model=hockney", "--", "NAME"],
    "predict": ["predict", "--model=NAME", "--set", "alpha=1us"],
    "predict --set": ["predict", "--model=hockney", "--set=NAME"],
    "predict --params": ["predict", "--model=hockney", "--params=NAME"],
    "predict --ranks": [
        "predict",
        "--model=pram",
        "--set=w=1us",
        "--operation=bcast",
        "--ranks=NAME",
        "--bytes=1",
    ],
    "compare": ["compare", "--in=NAME", "--out=c.csv"],
    "advise": ["advise", "--operation=bcast", "--ranks=4", "--bytes=1", "--platform=NAME"],
    "advise --params": ["advise", "--operation=bcast", "--ranks=4", "--bytes=1", "--params=NAME"],
    "kernel": ["predict", "kernel", "summa", "--params=NAME", "--ranks=4"],
    "kernel --partition": [
        "predict",
        "kernel",
        "wave2d",
        f"--params={PUBLISHED}",
        "--partition=NAME",
    ],
    "kernel --blocks": [
        "predict",
        "kernel",
        "summa",
        f"--params={PUBLISHED}",
        "--ranks=4",
        "--blocks=NAME",
    ],
    "topology": ["show", "topology", "--", "NAME"],
    "layout": ["show", "layout", "--ranks=4", "--", "NAME"],
    "families": ["show", "models", "--", "NAME"],
    "algorithms": ["show", "algorithms", "--", "NAME"],
    "schedule": ["show", "schedule", "--operation=NAME", "--ranks=4", "--bytes=1"],
    "import": ["import", "osu", "-o", "o.csv", "--", "NAME"],
    "import taulop": ["import", "taulop", "-o", "o.yaml", "--", "NAME"],
    "export rules": ["export", "rules", "--", "NAME"],
    "export mrnet": ["export", "mrnet", "flat:2", "--hosts=NAME"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_one_line_and_nothing_written(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for what, name in HOSTILE.items():
        if (verb, what) in {
            ("families", "nothing"),
            ("algorithms", "nothing"),
            ("plan --only", "nothing"),
        }:
            continue
        done = CliRunner().invoke(main, [word.replace("NAME", name) for word in VERBS[verb]])
        assert done.exit_code == 2, (what, done.output, done.exception)
        assert isinstance(done.exception, SystemExit), what
        said = [
            line
            for line in done.output.splitlines()
            if not line.startswith(("Usage:", "Try ")) and line
        ]
        assert len(said) == 1, (what, said)
        assert said[0].isprintable(), (what, said)
        assert len(said[0]) < 2500
        assert list(tmp_path.iterdir()) == [], what
