"""ABIDE's download fetches missing files only; a missing network gives one sentence."""

import pytest
import requests

from brainfed.cohort.sources import _downloads as abide
from brainfed.runtime import UserError

TABLE = "Phenotypic_V1_0b_preprocessed1.csv"
LISTED = ("Pitt_0050003", "Pitt_0050004", "NYU_0051005")


def source(folder, asked):
    """Replacement of nilearn's fetcher that records its requests and writes the files."""

    def fetch(*, data_dir, FILE_ID, **chosen):
        asked.append(list(FILE_ID))
        series = data_dir / "ABIDE_pcp" / "cpac" / "filt_global"
        series.mkdir(parents=True, exist_ok=True)
        lines = ["SUB_ID,FILE_ID", "1,no_filename", *(f"{number},{name}" for number, name in enumerate(LISTED))]
        (data_dir / "ABIDE_pcp" / TABLE).write_text("\n".join(lines))
        for name in FILE_ID:
            (series / f"{name}_rois_cc200.1D").touch()

    return fetch


def test_only_missing_files_are_fetched_and_every_subject_is_counted(tmp_path, monkeypatch):
    asked, progressed = [], []
    monkeypatch.setattr(abide, "fetch_abide_pcp", source(tmp_path, asked))
    (tmp_path / "ABIDE_pcp" / "cpac" / "filt_global").mkdir(parents=True)
    (tmp_path / "ABIDE_pcp" / "cpac" / "filt_global" / f"{LISTED[1]}_rois_cc200.1D").touch()
    abide.fetch_abide(tmp_path, lambda *progress: progressed.append(progress))
    assert asked == [[], [LISTED[0]], [LISTED[2]]]
    assert progressed == [(done, 3, "series of ABIDE I") for done in (1, 2, 3)]
    asked.clear()
    abide.fetch_abide(tmp_path, lambda *progress: None)
    assert asked == [[]]


def test_a_missing_network_gives_a_sentence_with_the_request_and_the_remedy(tmp_path, monkeypatch):
    def unreachable(*arguments, **keywords):
        raise requests.ConnectionError("Failed to resolve 's3.amazonaws.com'")

    monkeypatch.setattr(requests.Session, "send", unreachable)
    with pytest.raises(UserError) as caught:
        abide.fetch_abide(tmp_path, lambda *progress: None)
    assert str(caught.value) == (
        "ABIDE I: expected the phenotype table from https://s3.amazonaws.com/fcp-indi/data/Projects/ABIDE_Initiative, "
        "could not fetch it (ConnectionError); run this command again on a machine with a network (it continues where "
        f"it stopped), then copy {tmp_path} here."
    )


def test_an_interrupted_download_names_the_subject(tmp_path, monkeypatch):
    bring = source(tmp_path, [])

    def breaks(*, FILE_ID, **chosen):
        if LISTED[2] in FILE_ID:
            raise requests.HTTPError("404 Client Error")
        bring(FILE_ID=FILE_ID, **chosen)

    monkeypatch.setattr(abide, "fetch_abide_pcp", breaks)
    with pytest.raises(UserError, match=r"expected the series of NYU_0051005 \(3 of 3\) from https.*\(HTTPError\)"):
        abide.fetch_abide(tmp_path, lambda *progress: None)
