"""Fail on words that a reader has to guess: `make lint`.

The list has words that an earlier version of the code used, and words that reviewers did not understand. RIDDLES
are searched in docstrings, comments, messages, tables of columns, scripts of pages and documentation, IDENTIFIERS
among Python names, LOCALS among arguments and locals of functions. The first line of a function's docstring is
imperative."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "commodel"
RIDDLES = {  # what must not be written, and what to write instead
    r"(?:told|tells?|telling) apart": "statistically tied, distinguish, estimated together",
    r"(?:has|have|had|with) (?:a|any) say|no say": "has a weight, weight 0",
    r"unheard|heard": "weight 0",
    r"votes?|ballots?": "weight, combined prediction",
    r"blind to": "does not model",
    r"astray": "drifts",
    r"as it came": "unchanged",
    r"how far off": "error",
    r"what stands|that it sees|had better": "name the thing",
    r"dear(?:er|est)?": "slow, high",
    r"crowd(?:s|ed|ing)?": "contention",
    r"pric(?:e|es|ed)|unpriced": "prediction, predict",
    r"shaky|in doubt": "limited validity",
    r"beside what was|to the letter|as near as can be|what gets through": "and measured times, literally, name it",
    r"as good as told|last words|sign of life": "outcome",
    r"byte for byte what|say which|goes? on from there|no program minds|going on with": "a named subject and its verb",
}
SPEECH = {  # computation does not speak, hear or know: words that are no longer in the folders of SILENT
    r"nobody|somebody|whoever": "name the subject",
    r"tells?|told|hears?|speaks?": "reports, determines, distinguishes",
    r"asks first|asks its receiver|is asked|was asked": "rendezvous, requests, queries",
    r"worked out|looked at|gone through|written down": "computed, checked, replayed, from a file",
    r"goes on|going on|under way": "continues, concurrent, in flight",
}
SILENT = ("commodel/models", "commodel/patterns", "commodel/measure", "commodel/platforms", "native")
TESTS = "models", "patterns", "predictions", "measure", "native"  # folders of tests whose names and docstrings are read
SAID = {"price", "prices", "priced", "told", "tells", "heard", "asks", "asked", "astray", "crowd"}
UNNAMED = {"what", "whatever", "who", "whoever", "whose", "nobody"}  # in place of a noun, in names of all tests
NATIVE = "harness", "probes", "player", "kernels", "replay", "bench", "mrnet"  # folders of C sources


def compile_words(words: Iterable[str]) -> re.Pattern:
    """Return the pattern of any of these words, outside of names and paths."""
    return re.compile(r"(?<![\w`/.\-])(?:" + "|".join(words) + r")(?![\w`/])", re.IGNORECASE)


PROSE, SPOKEN = compile_words(RIDDLES), compile_words((*RIDDLES, *SPEECH))
NAMES = """
    a_level a_message after_all_was_done aloud anew asked asked_by astray at_its_ranks beats begun believe
    bends beside beside_estimates blind bracketed came carrier_of cores_of covers_reach crowd crowded crowding
    dear dearer describe_reach died_in downs dust each few fit_band fit_bands following_default forgive
    forgiven give_back given_of grace handed_down haste heard heard_by hears hider hollow identified in_a_row
    in_image is_whole keeps_cores kinds_of knows lacking lasting learns library_beside likeliest misfits
    moment noted offs on_the_curve on_trial our_name outline_bands owed patience placed_lines price priced
    prices pricing prove_rules refuse_what_cannot_be remembered remembering rests_on rig rung runs_in says
    select_for_proof select_for_trial shortened siblings sign_of_life simulates singles sizes_follow slowed_by
    speaks spoiled standing_on steadied stories story supported supposing talking TALKING tell telling tells
    told told_apart _told_apart unheard unplaced unpriced unsaid unsure USED_UP vote voted votes whence whose
    workshop worth_a_proof
"""
IDENTIFIERS = set(NAMES.split())
VAGUE = """
    about ahead alike alone apart aside asked back behind beside beyond by done even given got here held judged kept
    known listed look made many more most odd off once ones others picked place rest said
    seen some stands such taken there thing together told unseen usual way ways what whole
"""
LOCALS = set(VAGUE.split())  # arguments and locals of functions: they do not say what they hold
MOST_OTHER_DOCSTRINGS = 0  # of functions whose docstring is not imperative
NOT_IMPERATIVE = re.compile(
    r"(?:The|A|An|What|Whether|How|Which|Of|By|Where|When|If|Those|That|These|This|It|Its|In|On|As|With|For|From|All|Each"
    r"|Every|One|No|None|Same|So|Who|Without|At|Between|Among|Below|Some|Any|There|To|Not|Only|Both|Rows|Time|Times)\b"
    r"|[A-Z]?[a-z]+(?:[^e]ed|ing)\b"
)


def list_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file in which riddles are looked for, with their line numbers."""
    if path.suffix in (".c", ".h"):
        for match in re.finditer(r"/\*.*?\*/", text := path.read_text(), re.DOTALL):
            yield from enumerate(match[0].splitlines(), 1 + text.count("\n", 0, match.start()))
        return
    if path.suffix != ".py":
        yield from enumerate(path.read_text().splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and " " in token.string:
            for number, line in enumerate(token.string.splitlines()):
                yield token.start[0] + number, line


def find_riddles(path: Path) -> Iterator[str]:
    """Yield a line for each riddle in a file."""
    name = str(path.relative_to(ROOT))
    words = SPOKEN if name.startswith(tuple(f"workflow/{folder}" for folder in SILENT)) else PROSE
    for line, text in list_texts(path):
        for found in words.finditer(re.sub(r"`[^`]*`", "", text)):
            riddles = (RIDDLES | SPEECH).items()
            instead = next(say for riddle, say in riddles if re.fullmatch(riddle, found[0], re.IGNORECASE))
            yield f"{name}:{line}: found '{found[0]}', wanted words such as: {instead}"


def find_names(path: Path) -> Iterator[str]:
    """Yield a line for each definition in a Python file whose name is a riddle."""
    name = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(path.read_text())):
        defined = ()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined = (node.name,)
        elif isinstance(node, ast.arg):
            defined = (node.arg,)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined = (node.id,)
        for found in IDENTIFIERS.intersection(map(str.lower, defined)):
            yield f"{name}:{node.lineno}: the name '{found}' does not say what it is"


def find_locals(path: Path) -> Iterator[str]:
    """Yield a line for each argument or local of a function that does not say what it holds."""
    name = str(path.relative_to(ROOT))
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    bound = {node for function in functions for node in ast.walk(function) if isinstance(node, ast.arg | ast.Name)}
    for node in sorted(bound, key=lambda node: (node.lineno, node.col_offset)):
        stored = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node.ctx, ast.Store) else ""
        if stored in LOCALS:
            yield f"{name}:{node.lineno}: the name '{stored}' does not say what it holds"


def find_docstrings(path: Path) -> Iterator[str]:
    """Yield a line for each docstring of a function whose first line is not imperative; properties may have a noun."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
            accessor = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
            if not accessor and NOT_IMPERATIVE.match(text):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}: no verb comes first: '{text[:40]}…'"


def find_in_tests(path: Path) -> Iterator[str]:
    """Yield a line for each riddle in the names and docstrings of a file of tests."""
    name = path.relative_to(ROOT)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and (found := SAID.intersection(node.name.split("_"))):
            yield f"{name}:{node.lineno}: {node.name}: found '{min(found)}' in the name of a test"
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
            for found in SPOKEN.finditer(re.sub(r"`[^`]*`", "", text)):
                yield f"{name}:{getattr(node, 'lineno', 1)}: found '{found[0]}' in a docstring"


def find_unnamed(path: Path) -> Iterator[str]:
    """Yield a line for each test whose name has a pronoun in place of its subject or object."""
    for node in ast.walk(ast.parse(path.read_text())):
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if is_test and (found := UNNAMED.intersection(node.name.split("_"))):
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}: found '{min(found)}', wanted a noun"


def find_all() -> Iterator[str]:
    """Yield a line for each finding in the package, the C sources and the pages."""
    docstrings = []
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from find_riddles(path)
        yield from find_names(path)
        yield from find_locals(path)
        docstrings += find_docstrings(path)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        yield from find_unnamed(path)
    for path in sorted(path for folder in TESTS for path in (ROOT / "tests" / folder).rglob("*.py")):
        if "overlay" not in path.stem:
            yield from find_in_tests(path)
    for path in sorted(path for folder in NATIVE for path in (PACKAGE.parent / "native" / folder).glob("*.[ch]")):
        yield from find_riddles(path)
    pages = PACKAGE / "reports"
    shown = *(pages / "html").glob("*.[hj]*"), pages / "columns.csv", pages / "glossary.csv"
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", *sorted(shown)):
        yield from find_riddles(path)
    if len(docstrings) > MOST_OTHER_DOCSTRINGS:
        yield from docstrings
        yield f"found {len(docstrings)} docstrings without a verb first, wanted at most {MOST_OTHER_DOCSTRINGS}"


if __name__ == "__main__":
    findings = list(find_all())
    sys.stdout.write("".join(f"{line}\n" for line in findings))
    sys.exit(1 if findings else 0)
