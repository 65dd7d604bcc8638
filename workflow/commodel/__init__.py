"""commodel: what communication will cost on a cluster, predicted by published models and measured."""

__version__ = "0.1.0"
