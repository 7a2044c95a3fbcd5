"""BibTeX of the cited works: every work has an entry, keys differ, nothing is lost."""

import re

import pytest

from brainfed.methods.papers.pages import PAPERS
from brainfed.methods.registry import METHODS
from brainfed.reporting.manuscript.bibtex import bibtex
from brainfed.reporting.manuscript.citations import ATLASES, Citation, citations
from brainfed.reporting.papers.collected import works_of

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
