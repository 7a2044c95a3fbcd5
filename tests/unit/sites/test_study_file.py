"""A site's config beside the study's, and a site that has left the study."""

import json

import pytest
import yaml

from brainfed.checking._project import check_config
from brainfed.configuration import load_plan, read_config
from brainfed.runtime import UserError
from brainfed.sites.join import PastLeave
from brainfed.sites.study import require_extended_study, require_study_of, settings_of
from support.sites.study_config import STUDY

OWN = {"phenotype": "participants.csv", "series": "{subject}.csv"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path


def site(folder, extends="study.yaml", name="site.yaml", **changes):
    config = {"extends": extends, "cohorts": {"rest": OWN}, "study": {"site": "oslo"}} | changes
    (folder / name).write_text(yaml.safe_dump(config))
    return folder / name


def require(path):
    require_study_of(path, load_plan(read_config(path), [path]))


def test_paths_and_the_name_are_a_sites_own(folder):
    path = site(folder)
    require(path)
    assert check_config(path)[1] == []


CHANGES = [
    ({"seed": 8}, "seed: 20240101, as in the study, found 8"),
    ({"study": {"site": "oslo", "sites": ["oslo", "berlin", "rome"]}}, r"study\.sites: \[berlin, oslo\], as in"),
    ({"study": {"site": "oslo", "noise": "study"}}, "study.noise: secret, as in the study, found study"),
    ({"study": {"site": "oslo", "secure_sums": False}}, r"study\.secure_sums: true, as in the study, found false"),
    ({"cohorts": {"rest": OWN | {"regions": 100}}}, r"cohorts\.rest\.regions: 200, as in the study, found 100"),
]


@pytest.mark.parametrize(("changes", "words"), CHANGES)
def test_a_change_of_the_study_is_refused_by_join_and_by_check(folder, changes, words):
    path = site(folder, **changes)
    with pytest.raises(UserError, match=rf"site\.yaml: site 'oslo': expected {words}"):
        require(path)
    (finding,) = check_config(path)[1]
    assert finding.severity == "stops" and "as in the study, found" in finding.sentence


@pytest.mark.parametrize("extends", ["middle.yaml", ["study.yaml", "middle.yaml"]])
def test_the_study_is_the_nearest_file_that_is_no_sites(folder, extends):
    site(folder, name="middle.yaml", seed=8)
    path = site(folder, extends=extends, seed=8)
    with pytest.raises(UserError, match="expected seed: 20240101"):
        require(path)
    (folder / "middle.yaml").write_text(yaml.safe_dump({"extends": "study.yaml", "seed": 8}))
    require(path)


def test_the_studys_own_file_and_a_config_that_extends_none_are_left_to_the_coordinator(folder):
    require(folder / "study.yaml")
    alone = yaml.safe_load(STUDY)
    alone["study"]["site"] = "oslo"
    (folder / "alone.yaml").write_text(yaml.safe_dump(alone | {"seed": 8}))
    require(folder / "alone.yaml")
    assert settings_of(load_plan(alone))["study.sites"] == ["berlin", "oslo"]


MISLEADING = [
    (
        {"extends": None},
        "expected `extends` with the path of the study's file beside `study.site: oslo`, found no file",
    ),
    ({"cohorts": {"rests": OWN}}, r"cohorts\.rests: expected the cohort's name in study\.yaml, rest, found another"),
]


@pytest.mark.parametrize(("changes", "words"), MISLEADING)
def test_a_missing_study_or_a_cohort_of_another_name_is_the_first_thing_said(folder, changes, words):
    path = site(folder, **changes)
    path.write_text(yaml.safe_dump({key: value for key, value in yaml.safe_load(path.read_text()).items() if value}))
    with pytest.raises(UserError, match=rf"site\.yaml: {words}"):
        require_extended_study(path)
    (finding,) = check_config(path)[1]
    assert finding.severity == "stops" and "site.yaml: " in finding.sentence


def test_a_site_that_extends_a_study_and_a_coordinator_pass(folder):
    path = site(folder)
    require_extended_study(path)
    require_extended_study(folder / "study.yaml")
    assert [load_plan(read_config(each)).project.study.site for each in (path, folder / "study.yaml")] == ["oslo", ""]


def left(folder, study="a"):
    files = [folder / name for name in ("one.parquet", "two.parquet")]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]))
    past = PastLeave(folder / "left.json", study, tuple(map(str, files)))
    past.write()
    return past, files


def test_a_site_that_has_left_knows_when(tmp_path):
    past, _ = left(tmp_path)
    assert past.time().isoformat() == json.loads(past.path.read_text())["time"]


def test_without_a_leave_there_is_none(tmp_path):
    past, _ = left(tmp_path)
    past.remove()
    past.remove()
    assert past.time() is None


def test_another_study_was_not_left(tmp_path):
    past, _ = left(tmp_path)
    assert PastLeave(past.path, "b", past.files).time() is None


def test_other_results_or_fewer_were_not_left_with(tmp_path):
    past, (one, two) = left(tmp_path)
    one.write_bytes(b"other")
    assert past.time() is None
    one.write_bytes(bytes([0]))
    assert past.time() is not None
    two.unlink()
    assert past.time() is None


@pytest.mark.parametrize("note", ["", "[]", '{"study": "a"}'])
def test_a_damaged_note_is_none(tmp_path, note):
    past, _ = left(tmp_path)
    past.path.write_text(note)
    assert past.time() is None
