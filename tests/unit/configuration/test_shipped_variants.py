"""The variants that are shipped are valid: a plan checks those that somebody wrote, and those that it uses."""

import pytest

from brainfed.configuration import load_plan
from brainfed.configuration.planning import check_definition
from brainfed.methods import SHIPPED_VARIANTS
from brainfed.runtime import UserError


def planned(**variants):
    experiments = {"methods": {"variants": ["majority", "ridge-central"], "reference": "majority"}}
    return load_plan(
        {"project": "p", "cohorts": {"ours": {"source": "simulate"}}, "experiments": experiments, "variants": variants}
    )


@pytest.mark.parametrize("name", list(SHIPPED_VARIANTS))
def test_a_shipped_variant_is_valid(name):
    check_definition(planned().project, name, SHIPPED_VARIANTS[name])


@pytest.mark.parametrize("name", ["mine", "fedmlp"])
def test_a_variant_of_a_config_is_checked_also_where_no_experiment_uses_it(name):
    planned(**{name: {"method": "fedmlp", "rounds": 3}})
    with pytest.raises(UserError, match=f"variants.{name}: unknown key 'round'"):
        planned(**{name: {"method": "fedmlp", "round": 3}})
