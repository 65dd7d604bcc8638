"""Which code computes: its commit, its version, and those of the packages that can change a number."""

import hashlib
import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from commodel import __version__
from commodel.files.text import text_if_any
from commodel.sources import INSTALLED, ROOT

PACKAGE = Path(__file__).parents[1]
PACKAGES = ("numpy", "pandas", "scipy", "snakemake")


def commit() -> str:
    """As texts name it: an edited clone is not what its commit is."""
    commit, dirty = revision()
    return f"{commit}-dirty" if dirty else commit


@lru_cache
def revision() -> tuple[str, bool | None]:
    """The commit of the clone and whether it was changed since; in an image or an installation, what was noted
    when that was built."""
    if ROOT != INSTALLED and (commit := _git("rev-parse", "HEAD")):
        return commit, bool(_git("status", "--porcelain", "--untracked-files=no"))
    noted = text_if_any(ROOT / "COMMIT")
    return (noted.removesuffix("-dirty"), noted.endswith("-dirty")) if noted else ("unknown", None)


def versions(more: tuple[str, ...] = ()) -> dict[str, str]:
    """Of this program and of what computes for it. A digest of its Python files tells an edited one from a release."""
    installed = {"commodel": __version__, "code_digest": code_digest(), "python": platform.python_version()}
    for name in (*PACKAGES, *more):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = "not installed"
    return installed


@lru_cache
def code_digest() -> str:
    content = (
        path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes()
        for path in sorted(PACKAGE.rglob("*.py"))
    )
    return hashlib.blake2b(b"\0".join(content), digest_size=6).hexdigest()


def _git(*arguments: str) -> str:
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
