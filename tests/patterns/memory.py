"""What something takes in memory that Python knows of."""

import tracemalloc


def with_memory(make):
    """What is made, and the bytes that were in use at most meanwhile."""
    tracemalloc.start()
    try:
        made = make()
        return made, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
