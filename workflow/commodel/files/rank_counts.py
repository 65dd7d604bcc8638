"""Numbers of ranks in the names of files and in the output of launchers, for formats that do not
state them.

A name states the number by a word (`np64`, `64ranks`, `n4_ppn16`), or has one number without a word
(`osu_bcast_64.txt`). That number may have another meaning, such as a number of nodes, so it is only
assumed.
"""

import re
from dataclasses import dataclass
from pathlib import PurePath

from commodel.units import MAX_COUNT

# ends of a word in a name, in which `_` separates words
START = r"(?<![a-z0-9])"
END = r"(?![a-z0-9])"
PER_NODE = r"(?:(?:n?tasks|ranks?|procs?|processes)[-_]?per[-_]?node|per[-_]?node|ppn|rpn|tpn)"
NODES = r"(?:nnodes|nodes?|n)"
RANKS = r"(?:nprocs|ntasks|processes|procs?|ranks?|tasks|np)"
EXTENSION = re.compile(r"\.(?:txt|out|log|csv|dat|tsv|gz|tar|tgz)(?=\.|$)")
VERSION = re.compile(r"v?[0-9]{1,9}(?:\.[0-9]{1,9})+|\bv[0-9]{1,9}\b")
PRODUCT = re.compile(r"([0-9]{1,9})x([0-9]{1,9})")  # of nodes and ranks per node
# Words before or after a number that is no number of ranks.
OTHER_MEANING = re.compile(
    r"sizes?|bytes?|msg|message|len|length|[kmg]?i?b|count|elements|"
    r"runs?|reps?|repetition|trial|iter|iters|iterations?|warmup|seed|part|step|"
    r"job|jobid|id|slurm|pbs|lsf|flux|date|time|version|release|update|"
    r"threads?|omp|cores?|cpus?|gpus?|device|socket|n?nodes?|ppn|rpn|tpn|n|"
    r"osu|omb|imb|mpi|ompi|openmpi|mpich|mvapich2?|impi|intel|intelmpi|gcc|cuda|rocm|ucx"
)
PROGRAM = re.compile(r"(?:.*/)?osu_[a-z_]+")
LAUNCHER = re.compile(r"(?:.*/)?(?:mpirun|mpiexec(?:\.\w+)?|orterun|prun|srun|aprun)")
RANK_OPTIONS = ("-n", "-np", "--np", "--n", "--ntasks")
NODE_OPTIONS = ("-N", "--nodes")
PER_NODE_OPTIONS = ("--ntasks-per-node",)  # of srun
HEADER = re.compile(
    r"[#\s]*+(?:(?:number\s+of|num|total|mpi)[\s_]++)*+(?:nprocs|np|ranks|procs|processes|tasks|ntasks)\s*+[=:]\s*+"
    r"([0-9]{1,9})\s*",
    re.IGNORECASE,
)
VARIABLE = re.compile(
    r"(?:export\s+)?(?:SLURM_NTASKS|SLURM_NPROCS|PMI_SIZE|OMPI_COMM_WORLD_SIZE)=([0-9]{1,9})\s*"
)
MAX_COMMAND_LENGTH = 20_000  # characters of a line that may start a program


@dataclass(frozen=True)
class NamedRanks:
    """The number of ranks in a file's name; 0: the name has none. It is certain if a word states
    its meaning."""

    count: int = 0
    certain: bool = False

    def contradicts(self, ranks: int) -> bool:
        """Return whether a file of this name cannot be of so many ranks. A number without a word
        may be one of nodes, which have the same number of ranks each."""
        if not self.count:
            return False
        return ranks != self.count if self.certain else ranks % self.count != 0


NO_RANKS = NamedRanks()


def read_ranks_in_name(file: PurePath) -> NamedRanks:
    """Return the number of ranks in a file's name."""
    text = EXTENSION.sub("", file.name.lower())
    per_node, text = _take_numbers(PER_NODE, text)
    nodes, text = _take_numbers(NODES, text)
    stated, text = _take_numbers(RANKS, text)
    if len(nodes) == 1 and len(per_node) == 1:
        stated.add(min(nodes) * min(per_node))
    if stated or nodes or per_node:
        # In `4nodes_16ranks`, the 16 ranks may be those of a node.
        return _make_count(stated, certain=bool(per_node) or not nodes)
    return _make_count(_list_plain_numbers(VERSION.sub(" ", text)), certain=False)


def _take_numbers(word: str, text: str) -> tuple[set[int], str]:
    """Return the numbers beside a word, as in `np64`, `np=64` or `64_np`, and the text without
    them."""
    numbers = set()
    for pattern in (
        rf"{START}{word}[-_=]?([0-9]{{1,9}}){END}",
        rf"{START}([0-9]{{1,9}})[-_]?{word}{END}",
    ):
        numbers |= {int(digits) for digits in re.findall(pattern, text)}
        text = re.sub(pattern, " ", text)
    return numbers, text


def _list_plain_numbers(text: str) -> set[int]:
    """Return the numbers without a word that gives them another meaning."""
    words = re.findall(r"[a-z0-9]+", text)
    numbers = []
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if OTHER_MEANING.fullmatch(before) or OTHER_MEANING.fullmatch(after):
            continue
        product = PRODUCT.fullmatch(word)
        if product:
            numbers.append(int(product[1]) * int(product[2]))
        elif re.fullmatch(r"[0-9]+", word):
            # A leading zero is that of a date or of a position in a list.
            numbers.append(0 if word.startswith("0") or len(word) > 9 else int(word))
    return set(numbers) if len(numbers) == 1 else set()


def _make_count(numbers: set[int], certain: bool) -> NamedRanks:
    if len(numbers) != 1 or not 2 <= min(numbers) <= MAX_COUNT:
        return NO_RANKS
    return NamedRanks(min(numbers), certain)


def read_ranks_in_line(line: str) -> int | None:
    """Return the number of ranks that a line of output states: `# Number of ranks: 64`,
    `SLURM_NTASKS=64`, or the command that starts a program of OSU. 0 for a command without the
    number; None for any other line."""
    match = HEADER.fullmatch(line) or VARIABLE.fullmatch(line)
    if match:
        return int(match[1])
    if len(line) > MAX_COMMAND_LENGTH or "osu_" not in line:
        return None
    words = line.replace("'", " ").replace('"', " ").split()
    start = next((at for at, word in enumerate(words) if LAUNCHER.fullmatch(word)), None)
    if start is None:
        return None
    end = next(
        (at for at, word in enumerate(words) if PROGRAM.fullmatch(word) and at > start), None
    )
    if end is None:
        return None
    return 0 if ":" in words[end:] else _read_ranks_in_command(words[start:end])


def _read_ranks_in_command(words: list[str]) -> int:
    ranks = _find_values(words, RANK_OPTIONS)
    if not ranks and words[0].endswith("srun"):
        nodes, per_node = (
            _find_values(words, options) for options in (NODE_OPTIONS, PER_NODE_OPTIONS)
        )
        ranks = [nodes[0] * per_node[0]] if len(nodes) == len(per_node) == 1 else []
    return ranks[0] if len(ranks) == 1 else 0


def _find_values(words: list[str], options: tuple[str, ...]) -> list[int]:
    """Return the values of an option: `-n 64`, `--ntasks=64`, or `-n64`."""
    values = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        for option in options:
            joined = word.removeprefix(option).removeprefix("=") if word.startswith(option) else ""
            text = after if word == option else joined
            if re.fullmatch(r"[0-9]{1,9}", text):
                values.append(int(text))
    return values
