"""The library of the workflow: everything that its jobs compute, without Snakemake.

Each package has a door, its `__init__`: other code imports the names that the door offers, and no module whose name
begins with an underscore. ARCHITECTURE.md says which package may import which.
"""
