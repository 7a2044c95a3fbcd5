"""What an article takes from the page: citations, BibTeX, and the software with its versions."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from brainfed.methods import METHODS
from brainfed.papers import PAPERS
from brainfed.reporting import Citation, ShownVariant, mixed_versions
from brainfed.reporting._citations import ATLASES, bibtex, citations, software_of
from brainfed.reporting._papers import works_of
from brainfed.runtime.records import Making
from brainfed.runtime.records._made import read, write

EVERYTHING = citations(
    ["abide", "adni"],
    list(ATLASES),
    {"freesurfer", "tudataset"},
    works_of(PAPERS, METHODS),
    private=True,
    audited=True,
    poisoned=True,
)


def test_every_work_has_an_entry_with_its_fields():
    entries = bibtex(EVERYTHING).split("\n\n")
    assert len(entries) == len(EVERYTHING) > 25
    keys = [re.match(r"@\w+\{([a-z\u00c0-\u024f]+\d{4}[a-z]?),", entry)[1] for entry in entries]
    assert len(set(keys)) == len(keys)
    for work, entry in zip(EVERYTHING, entries, strict=True):
        assert entry.count("{") == entry.count("}")
        assert f"year = {{{re.search(r'[(]([0-9]{4})[)]', work.text)[1]}}}" in entry
        assert (f"doi = {{{work.doi}}}" in entry) == bool(work.doi)
        assert re.search(r"^  (journal|booktitle|eprint) = ", entry, re.MULTILINE)
        title = re.search(r"title = \{\{(.+)\}\}", entry)[1]
        assert title.replace("\\", "") in work.text


def test_an_article_by_hand():
    work = Citation("Di Martino A et al. (2014). The title: a part. Molecular Psychiatry 19, 659\u2013667.", "10.1/x_y")
    assert bibtex([work, work]).split("\n\n")[0] == (
        "@article{dimartino2014,\n  author = {Di Martino, A and others},\n  title = {{The title: a part}},\n"
        "  journal = {Molecular Psychiatry},\n  volume = {19},\n  pages = {659--667},\n  year = {2014},\n"
        "  doi = {10.1/x_y},\n}"
    )
    assert "@article{dimartino2014b," in bibtex([work, work])


def test_a_work_that_is_no_sentence_is_refused():
    with pytest.raises(ValueError, match="expected `Authors"):
        bibtex([Citation("An anonymous page")])


def result(folder, versions):
    """A `cost.json` beside the record of the job that wrote it."""
    outputs = [str(folder / "predictions.parquet"), str(folder / "cost.json")]
    folder.mkdir(parents=True)
    making = Making({"code": "a"}, (), outputs)
    for path in outputs:
        (folder / path).write_text(str(folder))
    making.finish(versions)
    return outputs[1]


def variant(name, *costs):
    return ShownVariant(name, name, name.upper(), "federated", costs=costs)


def experiment(*variants):
    return SimpleNamespace(variants=variants, tables={}, figures={})


@pytest.fixture
def results(tmp_path):
    return {
        version: result(tmp_path / f"numpy-{version}", {"brainfed": "0.1.0", "numpy": version, "python": "3.11"})
        for version in ("2.3", "2.4")
    }


def test_a_table_of_two_versions_alone_names_them_with_their_methods(results):
    assert mixed_versions(experiment(variant("a", results["2.4"]), variant("b", results["2.4"]))) == []
    (sentence,) = mixed_versions(experiment(variant("a", results["2.4"]), variant("b", results["2.3"])))
    assert sentence.startswith("Several versions of numpy computed the results of this table (2.3: B; 2.4: A).")


def test_the_page_counts_results_by_version(results):
    found = software_of(results.values())
    assert (found.jobs, found.unrecorded, found.adopted) == (2, 0, 0)
    assert "numpy\u00a02.3 (1 job) and 2.4 (1 job)" in found.listing
    assert "python\u00a03.11" in found.listing


def test_results_without_a_record_or_kept_on_request_are_counted(results, tmp_path):
    unknown = tmp_path / "unknown" / "cost.json"
    unknown.parent.mkdir()
    unknown.write_text("{}")
    kept = results["2.3"].replace("cost.json", "predictions.parquet")
    write(replace(read(kept), versions={}, adopted=True))
    found = software_of([str(unknown), results["2.3"]])
    assert (found.jobs, found.unrecorded, found.adopted, found.listing) == (1, 2, 1, "")
    (sentence,) = mixed_versions(experiment(variant("a", results["2.3"])))
    assert sentence.startswith("The results of 1 job behind this table were kept on request (BRAINFED_ADOPT)")


def test_the_inputs_of_results_count_too(tmp_path):
    scores = tmp_path / "scores" / "cost.json"
    scores.parent.mkdir()
    extracted = result(tmp_path / "extraction", {"nilearn": "0.12", "numpy": "2.3"})
    making = Making({"code": "b"}, (("series", (extracted,)),), [str(scores)])
    scores.write_text("{}")
    making.finish({"numpy": "2.4"})
    found = software_of([str(scores)])
    assert found.listing == "nilearn\u00a00.12, numpy\u00a02.3 (1 job) and 2.4 (1 job)"
    (sentence,) = mixed_versions(experiment(variant("a", str(scores))))
    assert "(2.3: A; 2.4: A)" in sentence
