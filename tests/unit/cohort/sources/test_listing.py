"""A cohort is listed at parse time; one sentence names a broken table or path."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.cohort.settings import CohortSettings, ColumnSettings, SimulateSettings
from brainfed.cohort.sources import list_cohort, shard_name
from brainfed.runtime import UserError

HEADER = "participant_id,site,age,sex,diagnosis"
ROWS = ("s2,a,20,male,patient", "s1,b,21,female,control")
TABLE = "\n".join((HEADER, *ROWS))


def cohort(folder, text=TABLE, series=("s1", "s2"), name="table.csv", **changes):
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    for subject in series:
        (folder / f"{subject}.1D").touch()
    settings = CohortSettings(
        source="timeseries",
        phenotype=str(folder / name),
        series=str(folder / "{file}.1D"),
        regions=3,
        fetch="snakemake fetch_it",
    )
    return replace(settings, **changes)


def test_subjects_come_in_ascending_order_with_their_files(tmp_path):
    listing = list_cohort("c", cohort(tmp_path, series=("s1",), on_invalid="drop"))
    assert [listed.subject for listed in listing.subjects] == ["s1", "s2"]
    assert [listed.site for listed in listing.subjects] == ["b", "a"]
    assert listing.with_series == ("s1",)
    assert listing.subjects[1].series == str(tmp_path / "s2.1D")
    assert listing.shards == (shard_name("s1", 8),)
    assert [listed.subject for listed in listing.members(listing.shards[0])] == ["s1"]


def test_quoted_cells_may_hold_separators_and_line_breaks(tmp_path):
    text = f'{HEADER},note\ns1,a,20,male,patient,"one, two\nthree"\ns2,a,20,male,patient,\n'
    assert list_cohort("c", cohort(tmp_path, text)).with_series == ("s1", "s2")


@settings(deadline=None)
@given(st.text(min_size=1), st.integers(1, 100))
def test_every_subject_has_one_of_the_shards(subject, shards):
    assert shard_name(subject, shards) in {f"shard-{number:02d}" for number in range(shards)}


def test_a_new_subject_moves_no_other(tmp_path):
    before = list_cohort("c", cohort(tmp_path))
    after = list_cohort("c", cohort(tmp_path, "\n".join((HEADER, *ROWS, "s0,a,30,male,control")), ("s0", "s1", "s2")))
    # As text: a motion that is missing is equal to nothing.
    assert str(after.subjects[1:]) == str(before.subjects)


def test_the_shard_is_a_remainder_of_the_hash():
    # `printf UM_1_0050279 | sha256sum` starts with 2d5a8f97e4f51d80.
    assert shard_name("UM_1_0050279", 8) == f"shard-{0x2D5A8F97E4F51D80 % 8:02d}"


def test_rows_without_a_file_are_listed_under_their_second_id(tmp_path):
    rows = ("no_filename,50002", "no_filename,50003", "x,50004")
    text = "\n".join(["FILE_ID,SUB_ID,site,age,sex,diagnosis", *(f"{row},a,1,male,patient" for row in rows)])
    columns = ColumnSettings(subject="FILE_ID", subject_fallback="SUB_ID", file="FILE_ID")
    listing = list_cohort("c", cohort(tmp_path, text, ("x",), columns=columns, missing=("no_filename",)))
    assert [(listed.subject, listed.series is None) for listed in listing.subjects] == [
        ("50002", True),
        ("50003", True),
        ("x", False),
    ]


def test_a_simulated_cohort_needs_no_file():
    settings = CohortSettings(source="simulate", simulate=SimulateSettings(subjects=30), shards=2)
    listing = list_cohort("demo", settings, "out")
    assert len(listing.with_series) == 30
    assert listing.subjects[0].series == "out/demo/simulated/sub-0001_bold.nii.gz"
    assert listing.tables == ("out/demo/simulated/participants.tsv",)
    assert (listing.parcellation, listing.labels) == (
        "out/demo/simulated/atlas.nii.gz",
        "out/demo/simulated/atlas.tsv",
    )
    assert listing.shards == ("shard-00", "shard-01")


TEN = "\n".join((HEADER, *(f"s{i},a,20,male,patient" for i in range(10))))


def test_one_absent_series_file_of_ten_stops_the_run(tmp_path):
    settings = cohort(tmp_path, TEN, series=("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s8", "s9"))
    message = r"series file .*s7\.1D of subject s7, found none \(1 of 10 are absent\); run `snakemake fetch_it`"
    with pytest.raises(UserError, match=message):
        list_cohort("c", settings)


def test_of_nine_absent_series_files_the_first_is_named_with_their_number(tmp_path):
    settings = cohort(tmp_path, TEN, series=("s4",))
    with pytest.raises(UserError, match=r"s0\.1D of subject s0, found none \(9 of 10 are absent\).*on_invalid: drop"):
        list_cohort("c", settings)


def test_an_absent_series_file_may_drop_its_subject_with_a_reason_of_its_own(tmp_path):
    text = "FILE_ID,SUB_ID,site,age,sex,diagnosis\nnone,1,a,1,male,patient\nx,2,a,1,male,patient\ny,3,a,1,male,patient"
    columns = ColumnSettings(subject="FILE_ID", subject_fallback="SUB_ID", file="FILE_ID")
    settings = cohort(tmp_path, text, ("x",), columns=columns, missing=("none",), on_invalid="drop")
    listing = list_cohort("c", settings)
    assert listing.with_series == ("x",)
    assert listing.absences == {"1": "no series", "y": "series file absent"}
    assert sum(len(listing.members(shard)) for shard in listing.shards) == 1


def nifti_cohort(folder, confounds, **changes):
    for subject in confounds:
        (folder / f"{subject}-confounds.tsv").touch()
    (folder / "atlas").touch()
    atlas = str(folder / "atlas")
    pattern = str(folder / "{subject}-confounds.tsv")
    return cohort(folder, source="nifti", parcellation=atlas, labels=atlas, confounds=pattern, **changes)


def test_every_subject_has_its_confounds(tmp_path):
    listing = list_cohort("c", nifti_cohort(tmp_path, ("s1", "s2")))
    assert [listed.confounds for listed in listing.subjects] == [
        str(tmp_path / "s1-confounds.tsv"),
        str(tmp_path / "s2-confounds.tsv"),
    ]


def test_a_pattern_without_any_confounds_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"expected confound tables at .*fix `confounds`"):
        list_cohort("c", nifti_cohort(tmp_path, (), on_invalid="drop"))


def test_one_absent_confounds_file_stops_the_run_or_drops_its_subject(tmp_path):
    settings = nifti_cohort(tmp_path, ("s2",))
    with pytest.raises(UserError, match=r"confounds file .*s1-confounds\.tsv of subject s1.*\(1 of 2 are absent\)"):
        list_cohort("c", settings)
    listing = list_cohort("c", replace(settings, on_invalid="drop"))
    assert listing.with_series == ("s2",)
    assert listing.absences == {"s1": "confounds file absent"}


def test_without_a_pattern_nobody_needs_confounds(tmp_path):
    listing = list_cohort("c", replace(nifti_cohort(tmp_path, ()), confounds=None))
    assert [listed.confounds for listed in listing.subjects] == [None, None]
    assert listing.absences == {}


def test_confounds_of_series_that_are_clean_already_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"NIfTI images only, found source 'timeseries'; remove `confounds`"):
        list_cohort("c", cohort(tmp_path, confounds=str(tmp_path / "{subject}.tsv")))


def test_an_absent_table_is_refused_with_the_command_that_downloads_it(tmp_path):
    settings = replace(cohort(tmp_path), phenotype=str(tmp_path / "absent.csv"))
    with pytest.raises(UserError, match=r"phenotype file .*absent.csv, found none; run `snakemake fetch_it`"):
        list_cohort("c", settings)


@pytest.mark.parametrize(
    ("source", "key"), [("timeseries", "phenotype"), ("timeseries", "series"), ("freesurfer", "phenotype")]
)
def test_a_relative_path_at_which_nothing_lies_is_named_with_the_folder_looked_in(tmp_path, monkeypatch, source, key):
    settings = replace(cohort(tmp_path), fetch=None, source=source, **{key: "data/{file}.csv"})
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path / "config")
    with pytest.raises(UserError) as caught:
        list_cohort("c", settings)
    looked = f"or go to the folder where data/{{file}}.csv starts, this is {tmp_path}/config"
    assert f"found none; fix `{key}`, {looked}" in str(caught.value)
    with pytest.raises(UserError) as caught:
        list_cohort("c", replace(settings, **{key: f"{tmp_path}/data/{{file}}.csv"}))
    assert "go to the folder" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "path", "hint"),
    [
        ("series", "serie/{file}.csv", "serie is not there, {}series is"),
        ("series", "series/{file}.1D", "series/s1.1D is not there, {}series/s1.csv is"),
        ("series", "series/{file}_x.csv", "series/s1_x.csv is not there, {}series/s1.csv is"),
        ("series", "elsewhere/deep/{file}.csv", "elsewhere is not there"),
        ("phenotype", "tabel.csv", "tabel.csv is not there, {}table.csv is"),
        ("phenotype", "series/table.csv", "series/table.csv is not there"),
    ],
)
@pytest.mark.parametrize("start", ["", "absolute"])
def test_the_part_of_a_path_that_is_not_there_is_named_with_a_similar_one(
    tmp_path, monkeypatch, start, key, path, hint
):
    (tmp_path / "series").mkdir()
    (tmp_path / "series" / "s1.csv").touch()
    monkeypatch.chdir(tmp_path)
    above = f"{tmp_path}/" if start else ""
    settings = replace(cohort(tmp_path), **{key: above + path})
    with pytest.raises(UserError) as caught:
        list_cohort("c", settings)
    assert str(caught.value).endswith(f" ({above}{hint.format(above)}).")


def test_a_misspelt_atlas_is_named_with_the_nearest(tmp_path):
    for near in ("CC200", "cc2000"):
        settings = replace(nifti_cohort(tmp_path, ("s1", "s2"), atlas=near), parcellation=None)
        with pytest.raises(UserError, match=r"found neither \(atlas '.*'\); did you mean 'cc200'\?$"):
            list_cohort("c", settings)


def test_absent_series_are_refused_with_the_pattern_and_the_command(tmp_path):
    with pytest.raises(UserError, match=r"series of 2 subjects at .*\{file\}.1D, found none; run `snakemake fetch_it`"):
        list_cohort("c", cohort(tmp_path, series=()))


@pytest.mark.parametrize(("source", "key"), [("timeseries", "regions"), ("nifti", "parcellation"), ("nifti", "series")])
def test_a_missing_setting_of_a_source_is_named(tmp_path, source, key):
    settings = replace(cohort(tmp_path, source=source, parcellation="p", labels="l"), **{key: None})
    with pytest.raises(UserError, match=f"source '{source}' needs `{key}`"):
        list_cohort("c", settings)


def test_regions_of_a_parcellation_without_a_table_have_numbers_for_names(tmp_path):
    listing = list_cohort("c", nifti_cohort(tmp_path, ("s1", "s2"), atlas="aal"))
    assert (listing.parcellation, listing.labels) == (str(tmp_path / "atlas"), str(tmp_path / "atlas"))
    listing = list_cohort("c", replace(nifti_cohort(tmp_path, ("s1", "s2"), atlas="aal"), labels=None))
    assert (listing.parcellation, listing.labels) == (str(tmp_path / "atlas"), None)


def test_a_known_atlas_needs_no_path_and_its_absent_file_names_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = replace(nifti_cohort(tmp_path, ("s1", "s2"), atlas="basc122"), parcellation=None, labels=None)
    message = (
        r"parcellation file resources/atlases/basc122.nii.gz, found none; run `snakemake fetch_atlases --cores 1` with "
        "this config or fix `atlas`"
    )
    with pytest.raises(UserError, match=message):
        list_cohort("c", settings)
    folder = tmp_path / "resources" / "atlases"
    folder.mkdir(parents=True)
    (folder / "basc122.nii.gz").touch()
    (folder / "basc122.tsv").touch()
    listing = list_cohort("c", settings)
    assert listing.parcellation == "resources/atlases/basc122.nii.gz"
    assert listing.labels == "resources/atlases/basc122.tsv"


def test_an_unknown_atlas_without_a_path_is_refused_with_the_known_ones(tmp_path):
    settings = replace(nifti_cohort(tmp_path, ("s1", "s2"), atlas="basc"), parcellation=None)
    with pytest.raises(UserError, match=r"among basc122, cc200, harvard-oxford, aal, found neither \(atlas 'basc'\)"):
        list_cohort("c", settings)


def test_series_of_a_known_atlas_need_no_image_of_it(tmp_path):
    assert list_cohort("c", cohort(tmp_path, atlas="cc200")).parcellation is None


@pytest.mark.parametrize("pattern", ["{fil}.1D", "{file.1D", "{0}.1D"])
def test_a_pattern_with_wrong_braces_is_named(tmp_path, pattern):
    with pytest.raises(UserError, match=r"expected \{file\}, \{subject\} or \{site\} in the `series` pattern"):
        list_cohort("c", replace(cohort(tmp_path), series=pattern))


@pytest.mark.parametrize("moved", ["phenotype", "series", "confounds", "parcellation", "labels"])
def test_an_input_in_the_folder_that_the_run_writes_is_refused(tmp_path, monkeypatch, moved):
    """A job could replace it, and `make prune` delete it; other folders of results are other people's."""
    monkeypatch.chdir(tmp_path)
    held = nifti_cohort(tmp_path, ("s1", "s2"))
    list_cohort("c", held)
    for name in ("c", "d"):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "x").mkdir(exist_ok=True)
        for file in (file for file in tmp_path.iterdir() if file.is_file()):
            (tmp_path / "results" / name / file.name).write_bytes(file.read_bytes())
    path = Path(str(getattr(held, moved)))
    list_cohort("c", replace(held, **{moved: str(tmp_path / "results" / "d" / path.name)}))
    for own in (f"results/c/{path.name}", str(tmp_path / "results" / "c" / path.name), f"./x/../results/c/{path.name}"):
        with pytest.raises(UserError, match=r"expected a file outside results/c, which the run writes, found .*; move"):
            list_cohort("c", replace(held, **{moved: own}))


@pytest.mark.parametrize("moved", ["phenotype", "series", "confounds", "parcellation", "labels"])
@pytest.mark.parametrize("stored", ["results", "results/d"])
def test_links_hide_no_input_that_the_run_writes(tmp_path, monkeypatch, moved, stored):
    """Results on another disk, and inputs that lead there: of the cohort, or of another one that the run makes."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    held = nifti_cohort(tmp_path, ("s1", "s2"))
    big, folder = tmp_path / "big", Path(stored)
    (big / ("d" if stored == "results" else "")).mkdir(parents=True)
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to(big)
    for file in [file for file in tmp_path.iterdir() if file.is_file()]:
        Path("results/d", file.name).write_bytes(file.read_bytes())
    Path("data").symlink_to("results/d")
    Path("copies").mkdir()
    for file in Path("results/d").iterdir():
        Path("copies", file.name).symlink_to(file.resolve())
    name = Path(str(getattr(held, moved))).name
    for place in ("results/d", "data", "copies", Path("results/d").resolve(), tmp_path / "work" / "data"):
        settings = replace(held, **{moved: str(Path(place, name))})
        list_cohort("c", settings, cohorts=["c", "e"])
        for made, cohorts, remedy in (("d", [], "data"), ("c", ["c", "d"], "data, or make cohort 'd' by a config of")):
            words = (
                rf"expected a file outside results/d, which the run writes, found \S*; move it, for example to {remedy}"
            )
            with pytest.raises(UserError, match=words):
                list_cohort(made, settings, cohorts=cohorts)


def test_listing_imports_nothing_heavy():
    code = (
        "import sys, brainfed.cohort.sources._listing, brainfed.imaging._settings; "
        "print(sorted({'numpy', 'pandas', 'torch', 'nilearn', 'sklearn', 'nibabel', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("a,20,divers,patient", "expected a sex code in column 'sex'"),
        ("a,20,male,sick", "expected a diagnosis code in column 'diagnosis'"),
        ("a,twenty,male,patient", "expected the age in years as a number"),
    ],
)
def test_an_unreadable_cell_stops_the_run_when_the_workflow_is_read(tmp_path, cells, words):
    with pytest.raises(UserError, match=f"line 2, subject s1: {words}"):
        list_cohort("c", cohort(tmp_path, f"{HEADER}\ns1,{cells}", ("s1",)))
