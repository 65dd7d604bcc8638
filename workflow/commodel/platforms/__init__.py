"""A place to run: what its file says, its network, image, tools, batch system and launchers. Nothing here knows a
pattern.
"""
