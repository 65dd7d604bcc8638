"""Print the size of the core, our extensions, the native programs, the tests of `make test`, and
labs, fuzz and benchmarks apart, by folder: files and tokens.

Python's tokens are those of `tokenize` without comments, line ends and indentation; a docstring is
one. C's tokens are names, numbers, strings and signs outside of comments."""

import io
import re
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "commodel"
NATIVE = ROOT / "workflow" / "native"
TESTS = ROOT / "tests"
APART = ("labs", "fuzz")  # folders of the tests that `make test` does not run
SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
C_FILES = ("*.c", "*.cc", "*.h")
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
C_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\w+|[^\w\s]')


def count_python_tokens(text: str) -> int:
    count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        count += token.type not in SKIPPED
    return count


def count_c_tokens(text: str) -> int:
    return len(C_TOKEN.findall(C_COMMENT.sub(" ", text)))


def measure_folders(root: Path, patterns: tuple[str, ...], count) -> dict[str, tuple[int, int]]:
    """Return files and tokens of each folder directly below the root; files in the root itself
    count as `.`."""
    folders: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path in sorted(found for pattern in patterns for found in root.rglob(pattern)):
        parts = path.relative_to(root).parts
        folder = folders[parts[0] if len(parts) > 1 else "."]
        folder[0] += 1
        folder[1] += count(path.read_text(encoding="utf-8"))
    return {name: (files, tokens) for name, (files, tokens) in folders.items()}


def main() -> None:
    extensions = sorted(PACKAGE.parent.glob("commodel_*"))
    tests = measure_folders(TESTS, ("*.py",), count_python_tokens)
    natives = [folder / "native" for folder in extensions if (folder / "native").is_dir()]
    parts = {
        "core": measure_folders(PACKAGE, ("*.py",), count_python_tokens),
        **{
            folder.name: measure_folders(folder, ("*.py",), count_python_tokens)
            for folder in extensions
        },
        "native": measure_folders(NATIVE, C_FILES, count_c_tokens),
        **{
            f"{folder.parent.name}/native": measure_folders(folder, C_FILES, count_c_tokens)
            for folder in natives
        },
        "tests": {name: size for name, size in tests.items() if name not in APART},
        "labs, fuzz, benchmarks": {name: tests[name] for name in APART}
        | {"benchmarks": measure_folders(ROOT / "benchmarks", ("*.py",), count_python_tokens)["."]},
    }
    for name, folders in parts.items():
        files, tokens = (sum(folder[column] for folder in folders.values()) for column in (0, 1))
        sys.stdout.write(f"{name:24}{files:6} files {tokens:9,} tokens\n")
        for folder, (files, tokens) in sorted(folders.items(), key=lambda entry: -entry[1][1]):
            sys.stdout.write(f"  {folder:22}{files:6}       {tokens:9,}\n")


if __name__ == "__main__":
    main()
