"""What tests of studies between sites share."""

from functools import cache

import pytest

from brainfed.sites import study as introduction

DIGEST = cache(introduction._code)


@pytest.fixture(autouse=True)
def _the_workflows_code_is_read_once(monkeypatch):
    """Its digest stands in every introduction of a site."""
    monkeypatch.setattr(introduction, "_code", DIGEST)
