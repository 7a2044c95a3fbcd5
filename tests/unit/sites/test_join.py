"""`brainfed join` and `coordinate`: what is looked at before a study, and how a site is stopped."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext

import pytest
import yaml

from federation.three_sites import COHORT, COHORT_OF_ALL, SITES, STUDY, write_data

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.configuration.layout import all_predictions, joint_files
from brainfed.runtime import UserError, folder_lock
from brainfed.sites import REFUSED, Packet, SiteClient, join
from brainfed.sites import coordinate as leading
from brainfed.sites import join as joining
from brainfed.sites.flower import FlowerFolder, make_certificate, make_key_pair
from brainfed.sites.join import LEFT, PastLeave
from brainfed.sites.study import StudyPlace, study_digest

ADDRESS = "127.0.0.1:9092"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a study, whose processes must not start."""
    monkeypatch.chdir(tmp_path)
    study = STUDY | {
        "cohorts": {COHORT: COHORT_OF_ALL},
        "study": {"sites": list(SITES), "address": ADDRESS, "accept_reconstruction": True},
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    for module in (leading, joining):
        monkeypatch.setattr(module, "together", lambda: pytest.fail("something was started"))
    return tmp_path


@pytest.fixture
def keys(folder):
    flower = FlowerFolder(folder / "federation")
    flower.make()
    for site in SITES:
        make_key_pair(flower.private_key(site), flower.public_key(site))
    return flower


def test_a_private_key_or_one_key_of_two_sites_ends_the_coordinator_before_it_starts(keys, folder):
    good = keys.public_key("south").read_bytes()
    shutil.copy(keys.private_key("north"), keys.public_key("south"))
    with pytest.raises(UserError, match=r"south\.pub: expected the public key of site 'south', found a private key"):
        leading.coordinate(folder / "study.yaml")
    shutil.copy(keys.public_key("north"), keys.public_key("south"))
    with pytest.raises(UserError, match="a key of site 'south' alone, found that of site 'north' too"):
        leading.coordinate(folder / "study.yaml")
    keys.public_key("south").write_bytes(good)
    with pytest.raises(pytest.fail.Exception, match="something was started"):
        leading.coordinate(folder / "study.yaml")


@pytest.fixture
def site(keys, folder):
    write_data(folder, ["north"])
    make_certificate(keys.certificate, keys.certificate_key, ["127.0.0.1"])
    own = {"phenotype": "resources/participants.csv", "series": "resources/series/{file}.1D"}
    config = {"extends": "study.yaml", "cohorts": {COHORT: own}, "study": {"site": "north"}}
    (folder / "site.yaml").write_text(yaml.safe_dump(config))
    return folder / "site.yaml"


def test_a_site_refuses_a_certificate_that_is_none(site, keys):
    keys.certificate.write_text("hello")
    with pytest.raises(UserError, match=r"certificate\.pem: expected the coordinator's certificate, found none"):
        joining.join(site, "1")


def test_a_site_that_changes_the_study_is_refused_at_once(site):
    site.write_text(yaml.safe_dump(yaml.safe_load(site.read_text()) | {"seed": 8}))
    with pytest.raises(UserError, match=r"site\.yaml: site 'north': expected seed: .*, as in the study, found 8"):
        joining.join(site, "1")


def test_a_site_that_has_left_ends_well_and_one_whose_results_changed_goes_on(site, folder, capsys):
    place = StudyPlace.of(site)
    files = joint_files(place.layout, COHORT)
    assert files
    for file in {*files, *all_predictions(place.layout, COHORT).values()}:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(file.encode())
    note = folder / "federation" / LEFT
    PastLeave(note, study_digest(place.plan), tuple(files)).write()
    joining.join(site, "1")
    said = capsys.readouterr().err
    assert said.startswith("north has left this study already, on ")
    assert "its report: results/reports/across.html, which `snakemake --cores all --configfile" in said
    (folder / files[0]).write_bytes(b"other")
    with pytest.raises(pytest.fail.Exception, match="something was started"):
        joining.join(site, "1")
    assert not note.exists()


def test_a_second_start_in_a_folder_is_refused_before_anything_is_made(site, folder):
    (folder / "federation" / "keys" / "north").unlink()
    held = r"expected no other `brainfed join` in this folder, found one that runs"
    lock = folder_lock(folder / "federation" / "join.lock", "`brainfed join` in this folder", "stop it")
    with lock, pytest.raises(UserError, match=held):
        joining.join(site, "1")
    assert not (folder / "federation" / "keys" / "north").exists()


def test_keys_that_are_made_are_named_and_a_lost_public_key_is_written_again(site, keys, folder, capsys):
    shutil.rmtree(folder / "federation" / "keys")
    keys.certificate.unlink()
    with pytest.raises(UserError, match=r"certificate\.pem: expected the coordinator's certificate, found no file"):
        joining.join(site, "1")
    made = folder / "federation" / "keys"
    said = f"made {made}/north, which stays here, and {made}/north.pub: send it to the coordinator\n"
    assert capsys.readouterr().err == said
    public = keys.public_key("north").read_bytes()
    keys.public_key("north").unlink()
    with pytest.raises(UserError, match="found no file"):
        joining.join(site, "1")
    assert keys.public_key("north").read_bytes() == public


def test_a_cohort_of_another_name_is_the_first_thing_said(site):
    config = yaml.safe_load(site.read_text())
    site.write_text(yaml.safe_dump(config | {"cohorts": {"other": config["cohorts"][COHORT]}}))
    with pytest.raises(UserError, match=rf"cohorts\.other: expected the cohort's name in study\.yaml, {COHORT}"):
        joining.join(site, "1")


def test_a_site_looks_for_the_coordinator_before_its_data_are_prepared(site, monkeypatch, capsys):
    class PreparedError(Exception):
        pass

    def prepare(run, files, environment, watch):
        raise PreparedError

    monkeypatch.setattr(joining, "together", lambda: nullcontext([]))
    monkeypatch.setattr(joining._Snakemake, "__call__", prepare)
    with pytest.raises(PreparedError):
        joining.join(site, "1")
    assert f"the coordinator at {ADDRESS} is not reached yet: " in capsys.readouterr().err


STUBBORN = (
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('ready', flush=True); time.sleep(3600)"
)


@pytest.fixture
def stubborn():
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, process_group=0)
    process.stdout.readline()
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()


def test_what_does_not_heed_an_interrupt_is_killed_in_the_end(stubborn, monkeypatch):
    monkeypatch.setattr(join, "ENDING_S", 0.2)
    join._Snakemake._end(stubborn)
    assert stubborn.returncode == -signal.SIGKILL


def test_a_second_interrupt_kills_at_once(stubborn, monkeypatch):
    monkeypatch.setattr(join, "ENDING_S", 600.0)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        join._Snakemake._end(stubborn)
    assert stubborn.returncode == -signal.SIGKILL
    assert time.monotonic() - begin < 300


def test_a_run_that_fails_because_the_coordinator_refused_the_site_ends_with_its_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(join.sys, "executable", shutil.which("false"))
    client = SiteClient(dict, lambda request: None, "secret")
    run = join._Snakemake(tmp_path / "site.yaml", "1", 0, client)
    with pytest.raises(UserError, match="Snakemake ended with code 1; mend the cause above"):
        run(["file"], {}, lambda: None)
    client.of_coordinator(Packet(REFUSED, {"sentence": "set both by NTP."}))
    with pytest.raises(UserError, match=r"^set both by NTP\.$"):
        run(["file"], {}, lambda: None)
