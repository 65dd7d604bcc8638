"""The locked packages, as installed here."""

import tomllib
from importlib.metadata import distribution

from packaging.specifiers import SpecifierSet

from commodel.platforms.tools import ROOT


def test_locked_packages_run_on_the_least_python_that_is_promised():
    """A lock made with a newer Python may have packages that the oldest one, such as 3.11.2 of
    Debian 12, does not install."""
    promised = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    least = f"{promised.removeprefix('>=')}.0"
    names = [
        line.partition("==")[0]
        for line in (ROOT / "envs/requirements.lock").read_text().splitlines()
    ]
    wanted = {name: distribution(name).metadata["Requires-Python"] or "" for name in names if name}
    assert len(wanted) > 50
    assert not {
        name: python for name, python in wanted.items() if not SpecifierSet(python).contains(least)
    }
