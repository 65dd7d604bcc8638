"""Platforms: the platform file, networks, container image, tools, batch system and launchers. No
module here knows a pattern.
"""
