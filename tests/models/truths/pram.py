"""The LogGP machine with the parameters of PRAM: only its local work takes time."""

from tests.models.synthetic import LOGGP, Truth, loggp_times

TRUTH = Truth(loggp_times(**LOGGP), {"gamma": LOGGP["gamma"]})
