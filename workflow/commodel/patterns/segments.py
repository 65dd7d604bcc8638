"""How a message is cut: into segments of a size, or into equal shares."""

import numpy as np

from commodel.errors import UserError
from commodel.units import parse_bytes

DEFAULT_SEGMENT = 8192
UNCUT = 1 << 30  # segments as long as this are none

PIPELINED = "[SEGMENT BYTES, else 8 KiB]"  # how the argument of a pipeline is written
MOST_SEGMENTS = 50_000_000


def segment_size(text: str) -> int:
    """The size that `text` gives."""
    size = parse_bytes(text) if text else DEFAULT_SEGMENT
    if size < 1:
        raise UserError(f"found segments of '{text}', wanted at least 1 byte")
    return size


def segment_sizes(bytes: int, text: str) -> np.ndarray:
    """Segments of the size that `text` gives, the last one shorter; an empty message is one empty segment."""
    size = segment_size(text)
    count = max(-(-bytes // size), 1)
    if count > MOST_SEGMENTS:
        raise UserError(f"found {count:,} segments of '{text}', wanted at most {MOST_SEGMENTS:,}")
    sizes = np.full(count, size)
    sizes[-1] = bytes - size * (count - 1)
    return sizes


def share(bytes: int, parts: int) -> np.ndarray:
    """Whole bytes over parts as evenly as can be, the larger shares first."""
    return bytes // parts + (np.arange(parts) < bytes % parts)
