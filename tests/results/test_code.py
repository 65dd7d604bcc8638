"""Which commit a measurement comes from: of a clone, of an image without one, of neither."""

import subprocess
from pathlib import Path

import pytest

import commodel
from commodel.results import provenance


@pytest.fixture(autouse=True)
def afresh():
    """A process has one commit, but these tests look at several."""
    provenance.revision.cache_clear()
    yield
    provenance.revision.cache_clear()


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    run = subprocess.run(["git", "-C", folder, *who, *arguments], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_a_clone_tells_its_commit_and_whether_it_was_edited(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    git(tmp_path, "init")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "one")
    assert provenance.revision() == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "a").write_text("2")
    assert provenance.revision()[1] is False  # as it was when this process began
    provenance.revision.cache_clear()
    assert provenance.revision()[1] is True
    assert provenance.commit() == f"{git(tmp_path, 'rev-parse', 'HEAD')}-dirty"


@pytest.mark.parametrize(
    ("noted", "revision"),
    [("4f2a91c", ("4f2a91c", False)), ("4f2a91c-dirty", ("4f2a91c", True)), (None, ("unknown", None))],
)
def test_an_image_tells_what_was_noted_when_it_was_built(noted, revision, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    if noted:
        (tmp_path / "COMMIT").write_text(f"{noted}\n")
    assert provenance.revision() == revision


def test_versions_name_what_can_change_a_number():
    versions = provenance.versions(("no-such-package",))
    assert {"commodel", "code_digest", "python", "numpy", "pandas", "scipy", "snakemake"} <= set(versions)
    assert versions["no-such-package"] == "not installed"


def test_the_digest_is_of_every_file_of_the_package():
    assert Path(commodel.__file__).parent == provenance.PACKAGE
