"""The model families, the probes that they are fitted from, and the mathematics that they share. No family knows an
algorithm by name.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
