"""The downloads of nilearn's fetchers become labels and a region table; a missing network gives one sentence."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
import requests

from brainfed.cohort.sources import KNOWN_ATLASES, fetch_atlases
from brainfed.cohort.sources._downloads import FETCHERS, parcellation_of
from brainfed.imaging.scans import Atlas, load_atlas
from brainfed.runtime import UserError

AFFINE = np.diag([3.0, 3, 3, 1])
SHAPE = (12, 12, 12)


def labels_of(values, stop=SHAPE):
    """An image whose voxels repeat the values in turn."""
    return np.resize(np.asarray(values, dtype=np.int16), stop)


def save(path, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(labels, AFFINE), path)


def xml(path, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<atlas><data>{''.join(labels)}</data></atlas>")


def basc(folder):
    name = "template_cambridge_basc_multiscale"
    save(folder / f"basc_multiscale_2015/{name}_nii_sym/{name}_sym_scale122.nii.gz", labels_of(range(123)))


def craddock(folder):
    stack = [labels_of(range(regions + 1)) for regions in (50, 190, 200, 211)]
    save(folder / "craddock_2012" / "tcorr05_2level_all.nii.gz", np.stack(stack, axis=-1))


def harvard_oxford(folder):
    atlases = folder / "fsl" / "data" / "atlases"
    save(atlases / "HarvardOxford" / "HarvardOxford-cortl-maxprob-thr25-2mm.nii.gz", labels_of(range(97)))
    labels = [f'<label index="{i}">{"RL"[i % 2]} area {i // 2}</label>' for i in range(96)]
    xml(atlases / "HarvardOxford-Cortical-Lateralized.xml", labels)


def aal(folder):
    codes = [2001 + 10 * i for i in range(116)]
    save(folder / "aal_SPM12" / "aal" / "atlas" / "AAL.nii", labels_of([0, *codes]))
    labels = [f"<label><index>{code}</index><name>Area_{code}</name></label>" for code in codes]
    xml(folder / "aal_SPM12" / "aal" / "atlas" / "AAL.xml", labels)


@pytest.mark.parametrize(
    ("name", "lay_out", "regions", "first"),
    [
        ("basc122", basc, 122, (1, "1")),
        ("cc200", craddock, 200, (1, "1")),
        ("harvard-oxford", harvard_oxford, 96, (1, "R area 0")),
        ("aal", aal, 116, (2001, "Area_2001")),
    ],
)
def test_downloads_become_labels_and_a_table(tmp_path, name, lay_out, regions, first):
    lay_out(tmp_path / "downloads")
    progressed = []
    fetch_atlases([name], tmp_path, lambda *progress: progressed.append(progress))
    atlas = load_atlas(name, tmp_path / f"{name}.nii.gz", tmp_path / f"{name}.tsv")
    assert isinstance(atlas, Atlas)
    assert len(atlas.regions) == regions
    assert (atlas.indices[0], atlas.regions[0]) == first
    assert set(np.unique(atlas.labels)) == {0, *atlas.indices}
    assert np.array_equal(atlas.affine, AFFINE)
    assert progressed == [(1, 1, "atlas")]


def test_existing_files_are_not_fetched_again(tmp_path, monkeypatch):
    basc(tmp_path / "downloads")
    fetch_atlases(["basc122"], tmp_path, lambda *progress: None)
    before = (tmp_path / "basc122.nii.gz").stat().st_mtime_ns
    monkeypatch.setitem(FETCHERS, "basc122", lambda folder: pytest.fail("fetched again"))
    fetch_atlases(["basc122"], tmp_path, lambda *progress: None)
    assert (tmp_path / "basc122.nii.gz").stat().st_mtime_ns == before


def test_the_table_keeps_names_that_begin_like_formulas(tmp_path, monkeypatch):
    names = ["+L", "-R", "=V1"]
    lut = pd.DataFrame({"index": range(4), "name": ["Background", *names]})
    monkeypatch.setitem(
        FETCHERS, "aal", lambda folder: {"maps": nib.Nifti1Image(labels_of(range(4)), AFFINE), "lut": lut}
    )
    fetch_atlases(["aal"], tmp_path, lambda *progress: None)
    assert load_atlas("aal", tmp_path / "aal.nii.gz", tmp_path / "aal.tsv").regions == tuple(names)


def test_every_known_atlas_has_a_fetcher():
    assert set(FETCHERS) == set(KNOWN_ATLASES)


def test_a_missing_network_gives_a_sentence_with_the_remedy(tmp_path, monkeypatch):
    def unreachable(*arguments, **keywords):
        raise requests.ConnectionError("Failed to resolve 'ndownloader.figshare.com'")

    monkeypatch.setattr(requests.Session, "send", unreachable)
    with pytest.raises(UserError) as caught:
        fetch_atlases(["basc122"], tmp_path, lambda *progress: None)
    assert str(caught.value) == (
        "Atlas basc122: expected the file of its source on the web, could not fetch it (ConnectionError); run this "
        f"command again on a machine with a network (it continues where it stopped), then copy {tmp_path} here."
    )
    assert not list(tmp_path.glob("basc122*"))


@pytest.mark.parametrize(
    ("values", "names", "message"),
    [
        (labels_of(range(5)), ["Background", "A", "B"], r"expected its 2 labels, found 2 more \(first: 3\)"),
        (labels_of(range(5)) + 0.5, None, "expected an image of labels, found fractions"),
        (labels_of([0]), None, "expected an image of labels, found fractions or zeros"),
    ],
)
def test_another_image_than_the_atlas_is_refused(values, names, message):
    fetched = {"maps": nib.Nifti1Image(values, AFFINE)}
    if names:
        fetched["lut"] = pd.DataFrame({"index": range(len(names)), "name": names})
    with pytest.raises(UserError, match=f"Atlas made-up: {message}"):
        parcellation_of("made-up", fetched)


def test_the_same_download_gives_the_same_bytes(tmp_path: Path):
    for folder in ("a", "b"):
        basc(tmp_path / folder / "downloads")
        fetch_atlases(["basc122"], tmp_path / folder, lambda *progress: None)
    for ending in ("nii.gz", "tsv"):
        assert (tmp_path / f"a/basc122.{ending}").read_bytes() == (tmp_path / f"b/basc122.{ending}").read_bytes()
