"""The models, the probes to which they are fitted, and their common mathematics. No model depends
on the name of an algorithm.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
