"""Numbers of ranks, nodes and ranks per node in the names of files and in the output of launchers,
for formats that do not state them.

A name states the number by a word (`np64`, `64ranks`, `n4_ppn16`), or has one number without a word
(`osu_bcast_64.txt`). That number may have another meaning, such as a number of nodes, so it is only
assumed.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import PurePath

from commodel.units import MAX_COUNT

# ends of a word in a name, in which `_` separates words
START = r"(?<![a-z0-9])"
END = r"(?![a-z0-9])"
PER_NODE = r"(?:(?:n?tasks|ranks?|procs?|processes)[-_]?per[-_]?node|per[-_]?node|ppn|rpn|tpn)"
NODES = r"(?:nnodes|nodes?|n)"
RANKS = r"(?:nprocs|ntasks|processes|procs?|ranks?|tasks|np|p)"
PERCENTILE = rf"{START}p(?:50|75|90|95|99|999){END}"  # not a number of ranks
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
PROGRAM = re.compile(r"(?:.*/)?(?:osu_[a-z_]+|IMB-\w{1,20})")
LAUNCHER = re.compile(r"(?:.*/)?(?:mpirun|mpiexec(?:\.\w+)?|orterun|prun|srun|aprun|flux)")
RANK_OPTIONS = ("-n", "-np", "--np", "--n", "--ntasks")
# By the launcher's name; the other launchers start programs for MPI.
NODE_OPTIONS = {"srun": ("-N", "--nodes"), "flux": ("-N", "--nodes")}
PER_NODE_OPTIONS = {"srun": ("--ntasks-per-node",), "flux": ("--tasks-per-node",)}
PER_NODE_OPTIONS_OF_MPI = ("-N", "-ppn", "--ppn", "-perhost", "-npernode", "--npernode")
PER_NODE_MAPPING = re.compile(r"(?:.*:)?ppr:([0-9]{1,9}):node(?:[:,].*)?")  # of --map-by
# of Open MPI, of Slurm, and of Intel MPI
CYCLIC_OPTION = re.compile(
    r" (?:--?map-by node\b|--?bynode|(?:-m |--distribution[= ])cyclic\b|-rr)(?![\w-])"
)
COUNT_OF_HEADER = r"\s*+[=:]\s*+([0-9]{1,9})\s*"
HEADERS = {  # by the field of `RankCounts`
    "ranks": re.compile(
        r"[#\s]*+(?:(?:number\s+of|num|total|mpi)[\s_]++)*+"
        r"(?:nprocs|np|ranks|procs|processes|tasks|ntasks)" + COUNT_OF_HEADER,
        re.IGNORECASE,
    ),
    "nodes": re.compile(
        r"[#\s]*+(?:(?:number\s+of|num|total)[\s_]++)*+(?:nnodes|nodes)" + COUNT_OF_HEADER,
        re.IGNORECASE,
    ),
    "per_node": re.compile(
        r"[#\s]*+(?:(?:number\s+of|num|mpi)[\s_]++)*+"
        r"(?:ranks|procs|processes|tasks|ntasks)[\s_]++per[\s_]++node" + COUNT_OF_HEADER,
        re.IGNORECASE,
    ),
}
VARIABLES = {  # the same
    "ranks": re.compile(
        r"(?:export\s+)?(?:SLURM_NTASKS|SLURM_NPROCS|PMI_SIZE|OMPI_COMM_WORLD_SIZE)=([0-9]{1,9})\s*"
    ),
    "nodes": re.compile(r"(?:export\s+)?(?:SLURM_NNODES|SLURM_JOB_NUM_NODES)=([0-9]{1,9})\s*"),
    "per_node": re.compile(
        r"(?:export\s+)?(?:SLURM_NTASKS_PER_NODE|SLURM_TASKS_PER_NODE)=([0-9]{1,9})(?:\(x[0-9]+\))?\s*"
    ),
}
JOB_SPECIFICATION = re.compile(r'\s*\{\s*"resources"\s*:')
MAX_COMMAND_LENGTH = 20_000  # characters of a line that may start a program


@dataclass(frozen=True)
class RankCounts:
    """How many ranks there are, on how many nodes, and how many on each; 0 if a number is
    unknown."""

    ranks: int = 0
    nodes: int = 0
    per_node: int = 0
    is_cyclic: bool = False  # whether consecutive ranks are on different nodes

    @property
    def layout(self) -> str:
        """The layout of the ranks; empty if the number of ranks per node is unknown. Ranks fill one
        node after the other unless the launcher was told otherwise."""
        if not self.per_node:
            return ""
        return f"{'cyclic' if self.is_cyclic else 'block'}:{self.per_node}"

    @property
    def complete(self) -> "RankCounts":
        """The placement with the third number, if two determine it."""
        if not self.ranks:
            return replace(self, ranks=self.nodes * self.per_node)
        if self.nodes and not self.per_node and self.ranks % self.nodes == 0:
            return replace(self, per_node=self.ranks // self.nodes)
        if self.per_node and not self.nodes:
            return replace(self, nodes=-(-self.ranks // self.per_node))
        return self

    @property
    def is_contradictory(self) -> bool:
        """Whether so many ranks do not need so many nodes."""
        if not (self.ranks and self.nodes and self.per_node):
            return False
        return -(-self.ranks // self.per_node) != self.nodes

    def filled(self, other: "RankCounts") -> "RankCounts":
        """Return the placement with the unknown numbers from another one."""
        return RankCounts(
            self.ranks or other.ranks,
            self.nodes or other.nodes,
            self.per_node or other.per_node,
            self.is_cyclic or other.is_cyclic,
        )

    def __str__(self) -> str:
        numbers = {"ranks": self.ranks, "nodes": self.nodes, "ranks per node": self.per_node}
        return ", ".join(f"{number} {name}" for name, number in numbers.items() if number)


NO_PLACEMENT = RankCounts()


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
    ranks, nodes, per_node, rest = _read_words(file.name)
    if len(nodes) == 1 and len(per_node) == 1:
        ranks.add(min(nodes) * min(per_node))
    if ranks or nodes or per_node:
        # In `4nodes_16ranks`, the 16 ranks may be those of a node.
        return _make_count(ranks, certain=bool(per_node) or not nodes)
    return _make_count(_list_plain_numbers(VERSION.sub(" ", rest)), certain=False)


def read_placement_in_name(name: str) -> RankCounts:
    """Return the numbers that words in the name of a file or folder state."""
    ranks, nodes, per_node, _ = _read_words(name)
    return RankCounts(_get_only(ranks), _get_only(nodes), _get_only(per_node))


def _read_words(name: str) -> tuple[set[int], set[int], set[int], str]:
    """Return the numbers of ranks, nodes and ranks per node in a name, and the rest of the name."""
    text = re.sub(PERCENTILE, " ", EXTENSION.sub("", name.lower()))
    per_node, text = _take_numbers(PER_NODE, text)
    nodes, text = _take_numbers(NODES, text)
    ranks, text = _take_numbers(RANKS, text)
    return ranks, nodes, per_node, text


def _get_only(numbers: set[int]) -> int:
    """Return the only number if it can be one of ranks or nodes, else 0."""
    return min(numbers) if len(numbers) == 1 and min(numbers) <= MAX_COUNT else 0


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


def read_placement_in_header(line: str) -> RankCounts | None:
    """Return what a line of output states of the placement, such as `# Number of ranks: 64` or
    `SLURM_NNODES=4`; None for any other line."""
    for patterns in (HEADERS, VARIABLES):
        for name, pattern in patterns.items():
            match = pattern.fullmatch(line)
            if match:
                number = {name: int(match[1])}
                return RankCounts(
                    number.get("ranks", 0), number.get("nodes", 0), number.get("per_node", 0)
                )
    return None


def read_job_specification(line: str) -> RankCounts | None:
    """Return the placement of a job specification of Flux, which has nodes, slots in each, and
    tasks in a slot; None for any other line."""
    if len(line) > MAX_COMMAND_LENGTH or not JOB_SPECIFICATION.match(line):
        return None
    try:
        job = json.loads(line)
        (node,) = job["resources"]
        (slot,) = node["with"]
        (task,) = job["tasks"]
        kinds = node["type"], slot["type"]
        counts = node["count"], slot["count"], task["count"]["per_slot"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if kinds != ("node", "slot"):
        return None
    if not all(type(count) is int and 0 < count <= MAX_COUNT for count in counts):
        return None
    nodes, slots, tasks = counts
    return RankCounts(nodes * slots * tasks, nodes, slots * tasks)


def read_placement_in_command(line: str) -> RankCounts | None:
    """Return the placement of a command that starts a program of OSU or IMB, numbers that it does
    not state as 0; None for any other line."""
    if len(line) > MAX_COMMAND_LENGTH or not ("osu_" in line or "IMB-" in line):
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
    return NO_PLACEMENT if ":" in words[end:] else _read_command(words[start:end])


def _read_command(words: list[str]) -> RankCounts:
    launcher = words[0].rpartition("/")[2]
    per_node = set(_find_values(words, PER_NODE_OPTIONS.get(launcher, PER_NODE_OPTIONS_OF_MPI)))
    for word in words:
        mapping = PER_NODE_MAPPING.fullmatch(word)
        if mapping:
            per_node.add(int(mapping[1]))
    return RankCounts(
        _get_only(set(_find_values(words, RANK_OPTIONS))),
        _get_only(set(_find_values(words, NODE_OPTIONS.get(launcher, ())))),
        _get_only(per_node),
        bool(CYCLIC_OPTION.search(" ".join(words))),
    ).complete


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
