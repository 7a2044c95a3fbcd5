"""The download of data sets of graphs brings what is missing, whole; a missing network gives one sentence."""

import pytest

from brainfed.cohort.sources.tudataset.fetch import fetch_data_sets
from brainfed.runtime.errors import UserError
from support.files.tu_data_set import write_data_set


def test_a_download_without_a_network_gets_one_sentence(tmp_path, monkeypatch):
    def unreachable(*_):
        raise OSError("no route")

    stub = type("Stub", (), {"url": "https://x", "__init__": unreachable})
    monkeypatch.setattr("brainfed.cohort.sources.tudataset.fetch.TUDataset", stub)
    with pytest.raises(UserError, match="TOY: expected the data set from https://x, could not fetch it"):
        fetch_data_sets(["TOY"], tmp_path, lambda *_: None)


def test_a_download_that_stopped_half_way_is_made_again(tmp_path, monkeypatch):
    raw = write_data_set(tmp_path, "TOY", 4)
    (raw / "TOY_graph_labels.txt").unlink()
    asked = []
    monkeypatch.setattr(
        "brainfed.cohort.sources.tudataset.fetch.TUDataset", lambda folder, name: asked.append((name, raw.exists()))
    )
    fetch_data_sets(["TOY"], tmp_path, lambda *_: None)
    assert asked == [("TOY", False)], "what was left is removed, else PyTorch Geometric takes it for whole"


def test_a_download_brings_only_what_is_missing(tmp_path, monkeypatch):
    write_data_set(tmp_path, "HERE", 4)
    asked = []
    monkeypatch.setattr("brainfed.cohort.sources.tudataset.fetch.TUDataset", lambda folder, name: asked.append(name))
    fetch_data_sets(["HERE", "GONE"], tmp_path, lambda *_: None)
    assert asked == ["GONE"]
