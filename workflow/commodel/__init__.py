"""commodel: what communication will cost on a cluster, predicted by every published model and measured."""

__version__ = "0.1.0"
