"""A back-end in Python for tests: the tag of a request selects its answer."""

import os
import sys
import time

import numpy as np

from commodel_overlay import attach

ECHO, OWN, DIE, MANY, SLOW, UNTIL_ENDED, REASONS = range(7)


def main(connection_file=None, number=-1):
    reasons = []  # why streams ended
    with attach(connection_file, number) as network:
        for question, stream in network:
            if question.tag == ECHO:
                stream.send(question)
            elif question.tag == OWN:
                stream.send("%ald %lf", np.arange(network.number, network.number + 5), 1.5)
            elif question.tag == DIE and network.number == question.values[0]:
                os._exit(9)
            elif question.tag == MANY:
                for wave in range(question.values[0]):
                    stream.send("%d", wave)
            elif question.tag == UNTIL_ENDED:
                while not stream.ended:
                    stream.send("%d", network.number)
                reasons.append(stream.ended)
            elif question.tag == REASONS:
                stream.send("%s", "; ".join(reasons))
            elif question.tag == SLOW:
                time.sleep(question.values[0])


if __name__ == "__main__":
    main(*([sys.argv[1], int(sys.argv[2])] if len(sys.argv) > 2 else []))
