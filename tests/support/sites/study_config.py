"""The config of a study between two sites."""

import json
from functools import cache

import yaml

from brainfed.configuration import load_plan
from brainfed.configuration._loading import overlay

STUDY = """
project: study
cohorts:
  rest: {source: timeseries, atlas: schaefer200, regions: 200}
split: {institutions: sites, folds: 3, repeats: 2}
graph: {scope: local}
experiments:
  methods: {variants: [ridge-local, fedmlp, fedtangent], reference: ridge-local}
study: {sites: [oslo, berlin], address: "hub.example.org:9092", accept_reconstruction: true}
"""


def planned(changes=None):
    """The plan of the study with changes."""
    return _planned(json.dumps(changes or {}))


@cache
def _planned(changes):
    return load_plan(overlay(yaml.safe_load(STUDY), json.loads(changes)))
