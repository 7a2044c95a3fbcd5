"""Valid configs, and the one sentence that answers an invalid one."""

import copy
import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml

from brainfed.configuration import ProjectSettings, extended, load_plan, mistakes, read_config
from brainfed.configuration.prune import schema
from brainfed.runtime import UserError

REPOSITORY = Path(__file__).resolve().parents[3]
FILES = sorted((REPOSITORY / "config").glob("*.yaml"))
SHIPPED = [path for path in FILES if "project" in yaml.safe_load(path.read_text())]
PARTS = [path for path in FILES if path not in SHIPPED]
"""Files that no run reads alone: others extend them."""

CONFIG = """
project: study
cohorts:
  ours: {source: simulate}
split: {count: 2, folds: 3, repeats: 1}
variants:
  quick: {method: fedgcn, rounds: 2, graph: {k: 3}}
experiments:
  methods: {variants: [ridge-central, localgcn, quick]}
"""


def config(**changes):
    """The config above with values laid at dotted paths (`__` for a dot)."""
    content = yaml.safe_load(CONFIG)
    for path, value in changes.items():
        *parents, last = path.split("__")
        here = content
        for key in parents:
            here = here.setdefault(key, {})
        here[last] = copy.deepcopy(value)
    return content


def complaint(content):
    """The sentence that answers a config."""
    with pytest.raises(UserError) as caught:
        load_plan(content)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence.endswith((".", "?"))
    return sentence


def assert_says(sentence, *words):
    missing = [word for word in words if word not in sentence]
    assert not missing, f"{missing} not in: {sentence}"


@pytest.mark.parametrize(
    ("changes", "key", "nearest"),
    [
        ({"cohort": {}}, "'cohort'", "'cohorts'"),
        ({"split__repeat": 2}, "'split.repeat'", "'repeats'"),
        ({"cohorts__ours__atlass": "x"}, "'cohorts.ours.atlass'", "'atlas'"),
        ({"cohorts__ours__simulate__subject": 3}, "'cohorts.ours.simulate.subject'", "'subjects'"),
        ({"cohorts__ours__simulate__sites": {"a": {"volume": 90}}}, "sites.a.volume'", "'volumes'"),
        ({"variants__quick__nois": 0}, "variants.quick", "'noise'"),
        ({"variants__unused": {"method": "fedgcn", "nois": 0}}, "variants.unused", "'noise'"),
        ({"variants__quick__graph__kk": 3}, "variants.quick.graph", "'k'"),
        ({"experiments__methods__variant": ["quick"]}, "'experiments.methods.variant'", "'variants'"),
        ({"experiments__methods__split": {"fold": 3}}, "experiments.methods.split", "'folds'"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_valid_one(changes, key, nearest):
    assert_says(complaint(config(**changes)), "unknown key", key, f"did you mean {nearest}?", "Allowed here: ")


def test_an_unknown_key_like_no_other_lists_what_is_allowed():
    assert_says(
        complaint(config(graph={"zzz": 1})), "unknown key 'graph.zzz'. Allowed here: k, embedding, embedding_dimensions"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": "abc"}, ("seed", "a whole number", "'abc'")),
        ({"split__folds": 2.5}, ("split.folds", "a whole number", "2.5")),
        ({"graph__age_gap": "wide"}, ("graph.age_gap", "a number", "'wide'")),
        ({"graph__age_gap": float("nan")}, ("graph.age_gap", "a finite number", "nan")),
        ({"project": ["study"]}, ("project", "text", "['study']")),
        ({"experiments__methods__variants": "quick"}, ("experiments.methods.variants", "a list", "'quick'")),
        ({"cohorts__ours": None}, ("cohorts.ours", "keys with values", "nothing")),
        ({"cohorts": "ours"}, ("cohorts", "keys with values", "'ours'")),
        ({"variants__quick": "fedgcn"}, ("variants.quick", "keys with values", "'fedgcn'")),
        ({"variants__quick__graph": 3}, ("variants.quick.graph", "keys with values", "3")),
        ({"split__folds": True}, ("split.folds", "a whole number", "found true")),
        ({"split__folds": False}, ("split.folds", "a whole number", "found false")),
        ({"variants__quick__noise": True}, ("noise", "a number", "found true")),
        ({"report__show_subjects": "maybe"}, ("report.show_subjects", "true or false", "'maybe'")),
        (
            {"cohorts__ours__simulate__grid": [9, 9]},
            ("cohorts.ours.simulate.grid", "3 values, found 2 in [9, 9]; write 3, as in [14"),
        ),
        (
            {"cohorts__ours__simulate__grid": [9, 9, 9, 9]},
            ("cohorts.ours.simulate.grid", "3 values, found 4 in [9, 9, 9, 9]"),
        ),
        (
            {"variants__quick__hidden": [8]},
            ("variants.quick: hidden", "a list of 2 values", "1 in [8]; write 2, as in [64, 32]."),
        ),
        ({"variants__quick__hidden": 8}, ("variants.quick: hidden", "2 values, found 8; write 2, as in [64, 32].")),
        ({"protocol": "inductiv"}, ("protocol", "transductive, inductive", "'inductiv'", "mean 'inductive'")),
        ({"cohorts__ours__source": "nifty"}, ("cohorts.ours.source", "simulate, nifti, ", "mean 'nifti'")),
        ({"graph__phenotypes": ["sex", "ages"]}, ("graph.phenotypes.1", "sex, age, site", "mean 'age'")),
        ({"variants__quick__weighting": "mean"}, ("variants.quick", "weighting", "equal, subjects", "'mean'")),
        ({"cohorts__ours__codes": {"sex": {1: "man"}}}, ("cohorts.ours.codes.sex.1", "male, female", "'man'")),
        ({"split__folds": 1}, ("split.folds", "at least 2", "found 1")),
        ({"variants__quick__fraction": 1.5}, ("variants.quick", "fraction", "at most 1", "found 1.5")),
        ({"variants__quick__noise": -0.1}, ("variants.quick", "noise", "at least 0", "found -0.1")),
        ({"variants__quick__graph__k": 0}, ("variants.quick.graph", "k", "at least 1", "found 0")),
        ({"cohorts__ours__regions": 1}, ("cohorts.ours.regions", "at least 2", "found 1")),
    ],
)
def test_a_wrong_type_word_or_bound_names_key_expectation_and_value(changes, words):
    assert_says(complaint(config(**changes)), *words)


@pytest.mark.parametrize("path", ["project", "cohorts", "cohorts.ours.source"])
def test_a_missing_required_key_is_named(path):
    content = config()
    *parents, last = path.split(".")
    here = content
    for key in parents:
        here = here[key]
    del here[last]
    assert_says(complaint(content), f"{path} is missing")


def test_settings_that_contradict_each_other_name_their_variant():
    assert_says(complaint(config(variants__quick__fraction=0.5, variants__quick__optimiser_state="keep")), "quick")
    assert_says(complaint(config(variants__r={"method": "ridge", "alphas": [1, 0.1]})), "variants.r", "ascending")
    assert_says(complaint(config(variants__l={"method": "localgcn", "epochs": 7})), "variants.l", "curve_every", "7")


def test_contradictions_are_listed_after_wrong_values():
    band = {"high_pass": 0.2, "low_pass": 0.1}
    content = config(cohorts__ours__extraction=band, split__folds=1)
    first, second = mistakes(ProjectSettings, content, "config")
    assert_says(first, "split.folds", "at least 2")
    assert_says(second, "extraction", "high_pass below low_pass")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"variants__quick__method": "fedgcm"},
            ("variants.quick.method", "the name of a method, found 'fedgcm'", "mean 'fedgcn'"),
        ),
        ({"variants__other": {"method": "fedgcm"}}, ("variants.other.method", "the name of a method", "mean 'fedgcn'")),
        (
            {"variants__other": {"rounds": 3}},
            (
                "variants.other",
                "`method` is missing",
                "centralgcn",
            ),
        ),
        (
            {"experiments__methods__variants": ["quik", "ridge-central"]},
            ("experiments.methods.variants", "the name of a variant, found 'quik'", "mean 'quick'"),
        ),
        (
            {"experiments__methods__cohorts": ["hours"]},
            ("experiments.methods.cohorts", "the name of a cohort, found 'hours'", "mean 'ours'? Write one of: ours."),
        ),
        (
            {"experiments__methods__reference": "ridge-centrl"},
            (
                "experiments.methods.reference",
                "'ridge-centrl'",
                "mean 'ridge-central'",
                "It has ridge-central, localgcn",
            ),
        ),
        (
            {"experiments__methods__reference": "svm-central"},
            ("experiments.methods.reference", "one of the experiment's variants", "'svm-central'"),
        ),
        ({"experiments__methods__variants": ["quick"] * 2 + ["ridge-central"]}, ("'quick' twice",)),
        ({"variants__r": {"method": "ridge", "graph": {"k": 3}}}, ("variants.r.graph", "'ridge' reads no graph")),
        ({"variants__m": {"method": "motion", "features": {"fisher_z": True}}}, ("variants.m.features", "no features")),
        ({"project": "a/b"}, ("project", "'a/b'")),
        ({"cohorts__a b": {"source": "simulate"}}, ("cohorts", "'a b'")),
        ({"variants__../x": {"method": "fedgcn"}}, ("variants", "'../x'")),
        ({"cohorts__reports": {"source": "simulate"}}, ("cohorts.reports", "rename")),
        ({"experiments__methods-runs": {}}, ("experiments.methods-runs", "may not end in -runs,")),
        ({"cohorts": {}}, ("cohorts", "at least one")),
        ({"experiments": {}}, ("experiments", "at least one")),
    ],
)
def test_a_name_that_does_not_exist_does_not_fit_or_can_name_no_file_is_named(changes, words):
    assert_says(complaint(config(**changes)), *words)


def test_a_word_that_yaml_takes_for_a_boolean_is_explained():
    codes = yaml.safe_load("diagnosis: {yes: patient, no: control}")
    assert_says(complaint(config(cohorts__ours__codes=codes)), "codes.diagnosis", "found true", "in quotes")


@pytest.mark.parametrize("written", ["off", "0", '"off"', "false"])
def test_noise_off_is_no_noise(written):
    content = yaml.safe_load(CONFIG.replace("rounds: 2", f"rounds: 2, noise: {written}"))
    quick = load_plan(content).experiments["methods"].variants[2]
    assert quick.settings["noise"] == 0 and isinstance(quick.settings["noise"], float)


@pytest.mark.parametrize("method", ["fedni", "fedsage-plus"])
def test_the_noise_of_a_generator_is_switched_off_by_the_same_word(method):
    written = f"  quiet: {{method: {method}, inpainting: {{noise: off}}}}"
    content = yaml.safe_load(CONFIG)
    content.setdefault("variants", {}).update(yaml.safe_load(written))
    content["experiments"]["methods"]["variants"] = ["ridge-central", "quiet", method]
    _, quiet, plain = load_plan(content).experiments["methods"].variants
    assert (quiet.stages["inpainting"].settings.noise, plain.stages["inpainting"].settings.noise) == (0, 0.01)


def test_none_and_null_are_the_same():
    for written in ("none", "null"):
        content = yaml.safe_load(CONFIG.replace("{source: simulate}", f"{{source: nifti, confounds: {written}}}"))
        assert load_plan(content).project.cohorts["ours"].confounds is None


def test_true_labels_may_be_written_without_quotes():
    content = yaml.safe_load(CONFIG.replace("{variants:", "{labels: true, variants:"))
    assert load_plan(content).experiments["methods"].regime.labels == "true"


def test_codes_may_be_written_as_numbers():
    codes = "codes: {sex: {1: male, 2: female}, diagnosis: {1: patient, 2: control}}, missing: [-9999]"
    content = yaml.safe_load(CONFIG.replace("{source: simulate}", f"{{source: simulate, {codes}}}"))
    ours = load_plan(content).project.cohorts["ours"]
    assert ours.codes.sex == {"1": "male", "2": "female"}
    assert (ours.codes.diagnosis, ours.missing) == ({"1": "patient", "2": "control"}, ("-9999",))


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A config on disk, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(CONFIG)
    return tmp_path


def test_extending_merges_keys_and_replaces_values_and_lists(base):
    merged = extended(
        {
            "extends": "base.yaml",
            "project": "other",
            "split": {"repeats": 4},
            "variants": {"slow": {"method": "fedgcn"}, "quick": {"graph": {"k": 9}}},
            "experiments": {"methods": {"variants": ["ridge-central"]}},
        }
    )
    assert merged == {
        "project": "other",
        "cohorts": {"ours": {"source": "simulate"}},
        "split": {"count": 2, "folds": 3, "repeats": 4},
        "variants": {"slow": {"method": "fedgcn"}, "quick": {"method": "fedgcn", "rounds": 2, "graph": {"k": 9}}},
        "experiments": {"methods": {"variants": ["ridge-central"]}},
    }


def test_null_takes_a_named_thing_away_and_is_a_value_elsewhere(base):
    merged = extended({"extends": "base.yaml", "variants": {"quick": None}, "split": None, "seed": None})
    assert merged["variants"] == {} and "split" not in merged and merged["seed"] is None


def test_a_chain_of_configs_ends_in_the_topmost(base):
    (base / "middle.yaml").write_text("extends: base.yaml\nseed: 1\nthreads: 3\n")
    plan = load_plan({"extends": "middle.yaml", "seed": 2})
    assert (plan.project.project, plan.project.seed, plan.project.threads) == ("study", 2, 3)


def test_of_several_configs_each_lies_over_the_one_before(base):
    (base / "first.yaml").write_text("extends: base.yaml\nseed: 1\nthreads: 3\n")
    (base / "second.yaml").write_text("seed: 2\nsplit: {repeats: 4}\n")
    merged = extended({"extends": ["first.yaml", "second.yaml"], "threads": 5})
    assert (merged["seed"], merged["threads"], merged["project"]) == (2, 5, "study")
    assert merged["split"] == {"count": 2, "folds": 3, "repeats": 4}


@pytest.mark.parametrize("named", [[], 3, ["base.yaml", 3], ""])
def test_extends_needs_paths(base, named):
    assert_says(complaint({"extends": named}), "`extends`", "a list of paths")


def test_an_error_in_an_extended_config_is_found(base):
    (base / "base.yaml").write_text(CONFIG.replace("folds: 3", "folds: 1"))
    assert_says(complaint({"extends": "base.yaml"}), "split.folds", "at least 2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n  b: 1\n   c: 2\n", "line 3: expected no colon here"),
        ("a:\n  b: 1\n  c:\n    d: 1\n   e: 2\n", "line 5: expected a line that begins where others of its block do"),
        ("a:\n  b: 1\n c: 2\n", "as line 1 in column 1, found it in column 2; indent it"),
        ("a:\n  - 1\n - 2\n", "line 3: expected a line that begins where others of its block do"),
        ("a:\n  b: 1\n\tc: 2\n", "line 3: expected blanks at the begin of a line or value, found a tab"),
        ("a:\n\tb: 1\n", "line 2: expected blanks at the begin of a line or value, found a tab"),
        ("a:b\nc: 1\n", "put a blank after the colon above"),
        ("a: 'x\nb: 1\n", "line 3: expected YAML, found an error (while scanning a quoted scalar from line 1: "),
        ("id,age\ns17,secret\n", "expected keys with values, found a text; fix the file, or name the config."),
        ("- secret\n", "found a list"),
        ("", "found nothing"),
    ],
)
def test_a_slip_in_yaml_is_named_by_line_and_cause_without_the_content(tmp_path, text, words):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_config(path)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value) and "unicode string" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (None, ("`extends`", "nowhere.yaml", "no file")),
        ("extends: nowhere.yaml\n", ("nowhere.yaml", "back to itself")),
        ("project: [a\n", ("nowhere.yaml", "expected YAML")),
        ("- project\n", ("nowhere.yaml", "keys with values")),
        ("", ("nowhere.yaml", "keys with values")),
    ],
    ids=["missing", "circle", "broken", "list", "empty"],
)
def test_a_config_that_cannot_be_extended_is_named(base, written, words):
    if written is not None:
        (base / "nowhere.yaml").write_text(written)
    assert_says(complaint({"extends": "nowhere.yaml"}), *words)


@cache
def validator():
    """That of the schema, which is valid itself."""
    jsonschema.Draft202012Validator.check_schema(json.loads(schema()))
    return jsonschema.Draft202012Validator(json.loads(schema()))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_configs_are_valid(path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    content = yaml.safe_load(path.read_text())
    assert load_plan(content).experiments
    validator().validate(content)


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.stem)
def test_a_part_is_valid_under_any_project(path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    part = path.relative_to(REPOSITORY).as_posix()
    plan = load_plan({"extends": part, "project": "study", "cohorts": {"ours": {"source": "simulate"}}})
    assert all(experiment.cohorts == ("ours",) for experiment in plan.experiments.values())


def test_there_are_shipped_configs():
    assert {path.stem for path in SHIPPED} >= {"config", "abide", "abide-quick", "abide-sites"}
    assert [path.stem for path in PARTS] == ["fglbc", "gahfl", "paper", "robustness"]


@pytest.mark.parametrize(
    "changes",
    [
        {"cohort": {}},
        {"split__folds": 1},
        {"split__share": 2},
        {"protocol": "inductiv"},
        {"variants__quick__nois": 1},
        {"variants__quick__method": "fedgcm"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_schema_refuses_what_the_workflow_refuses(changes):
    complaint(config(**changes))
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(config(**changes))


@pytest.mark.parametrize("word", [False, "off", "none", None])
def test_a_filter_edge_can_be_switched_off(word):
    config = {"project": "p", "cohorts": {"c": {"source": "simulate", "extraction": {"high_pass": word}}}}
    assert load_plan(config).project.cohorts["c"].extraction.high_pass is None


@pytest.mark.parametrize("cohort", ["ours", "simulate", "classes", "tr"])
@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"source": "simulate", "simulate": {"groups": 3}}, "simulate.groups"),
        ({"source": "simulate", "simulate": {"sites": {}}}, "simulate.sites"),
        ({"source": "simulate", "classes": ["a", "b"]}, "classes"),
        ({"source": "tudataset", "tudataset": {"names": ["MUTAG", "MUTAG"]}}, "tudataset.names"),
    ],
)
def test_settings_that_contradict_each_other_are_named_by_their_whole_key(cohort, values, key):
    sentence = complaint(config(cohorts={cohort: values}))
    assert sentence.startswith(f"config: cohorts.{cohort}.{key}: expected"), sentence


def test_a_key_of_settings_for_all_variants_is_named_in_its_place():
    changed = config(graph={"embedding": "pca", "distance": "correlation"})
    assert complaint(changed).startswith("config: graph.distance: expected euclidean with embedding pca")
