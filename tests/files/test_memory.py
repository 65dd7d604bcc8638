"""Memory that is given back."""

import gc
import weakref

from commodel.files.streams import give_back


class Node:
    def __init__(self):
        self.own = self


def test_what_refers_to_itself_is_given_back():
    gc.disable()  # or Python may have looked for it by then
    try:
        node = weakref.ref(Node())
        assert node() is not None
        give_back()
        assert node() is None
    finally:
        gc.enable()
