"""A study between sites: who takes part, and what is refused because it needs the data of several sites."""

import pytest

from brainfed.runtime import UserError
from support.sites.study_config import planned


def methods(*variants, **more):
    return {"experiments": {"methods": {"variants": list(variants), "reference": variants[0]}, **more}}


def test_sites_have_the_order_of_their_names():
    assert planned().project.study.ordered == ("berlin", "oslo")


@pytest.mark.parametrize(
    ("study", "sentence"),
    [
        ({"sites": ["oslo"]}, "expected two or more, found oslo alone"),
        ({"sites": ["oslo", "oslo"]}, "expected every name once, found oslo twice"),
        ({"sites": ["oslo", "../x"]}, "expected names of letters"),
        ({"site": "madrid"}, "config: study.site: expected one of oslo, berlin, found madrid"),
        ({"address": "hub.example.org"}, "expected the coordinator's name and port"),
        ({"address": "https://hub.example.org:9092"}, "expected the coordinator's name and port"),
        ({"address": "h\u00fcb.example.org:9092"}, "expected the coordinator's name and port"),
        ({"address": "...:9092"}, "expected the coordinator's name and port"),
        ({"address": "hub.example.org:\u0663\u0663"}, "expected the coordinator's name and port"),
        ({"address": "hub.example.org:99999"}, "expected the coordinator's name and port"),
        ({"least": 3}, "config: study.least: expected at most 2, the number of sites, found 3"),
        ({"sites": [], "site": "oslo"}, "expected the names of all sites beside site: oslo"),
    ],
)
def test_a_study_that_cannot_be_is_refused(study, sentence):
    with pytest.raises(UserError, match=sentence):
        planned({"study": study})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (methods("ridge-local", "ridge-central"), "'ridge-central' of method 'ridge', which pools subjects"),
        (methods("ridge-local", "fedsage-plus"), "'fedsage-plus' .* runs in a simulation alone"),
        ({"split": {"institutions": "random", "count": 2}}, r"split\.institutions: sites between .* found random"),
        ({"split": {"validation": "holdout"}}, r"split\.validation: folds or leave_one_site_out .* found holdout"),
        (
            {"split": {"validation": "leave_one_site_out"}},
            r"shared model scores a site that is left out .*fedtangent.* found 'ridge-local' of method 'ridge'",
        ),
        (
            {**methods("ridge-local", "fedmlp", "localmlp"), "split": {"validation": "leave_one_site_out"}},
            r"found 'ridge-local' of method 'ridge', 'localmlp' of method .*; take them out of `variants` and `refer",
        ),
        (
            {**methods("fedmlp", "fedtangent"), "split": {"validation": "leave_one_site_out"}},
            r"split\.validation: expected study\.secure_sums: false to leave sites out in turn, found true",
        ),
        (
            {
                **methods("fedmlp", "fedtangent"),
                "split": {"validation": "leave_one_site_out"},
                "study": {"secure_sums": False},
            },
            r"split\.validation: expected more than 2 sites \(study\.least\), .* found 2",
        ),
        ({"features": {"harmonise": "combat"}}, r"harmonise: none between sites that are apart, found combat"),
        ({**methods("ridge-local", "fedgcn"), "graph": {"scope": "global"}}, "scope: local between sites"),
    ],
)
def test_what_needs_the_data_of_several_sites_is_refused(changes, sentence):
    assert planned()
    with pytest.raises(UserError, match=sentence):
        planned(changes)


def test_a_variant_under_two_splits_is_refused_as_its_counts_would_be_mixed():
    other = {"variants": ["ridge-local", "fedmlp"], "reference": "ridge-local"}
    assert planned(methods("ridge-local", "fedmlp", again=other))
    with pytest.raises(UserError, match=r"experiments\.again\.variants: expected 'ridge-local' under one split"):
        planned(methods("ridge-local", "fedmlp", again=other | {"split": {"folds": 5}}))


def test_a_round_of_fewer_sites_than_a_sum_needs_is_refused():
    few = {"few": {"method": "fedmlp", "fraction": 0.4}}
    changes = {**methods("ridge-local", "few"), "variants": few}
    with pytest.raises(UserError, match=r"variants\.few\.fraction to draw at least 2 of 2 sites .* which draws 1"):
        planned(changes)
    assert planned({**changes, "study": {"secure_sums": False}})


def test_sites_are_left_out_in_turn_where_enough_are_left():
    three = {"sites": ["oslo", "berlin", "york"], "secure_sums": False}
    changes = {**methods("fedmlp", "fedtangent"), "split": {"validation": "leave_one_site_out"}, "study": three}
    assert planned(changes).experiments["methods"].regime.unseen
