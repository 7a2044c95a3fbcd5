"""The shared made-up project: its outline, fresh for each test, and its page, written once."""

import pytest

from support.reports.report_project import outline_of, page_of, shared_project, words_of


@pytest.fixture
def outline():
    return outline_of(shared_project(), show_subjects=False)


@pytest.fixture
def experiment(outline):
    return outline["cohorts"][0]["experiments"][0]


@pytest.fixture(scope="session")
def page():
    """The page of the outline as it is."""
    return page_of(outline_of(shared_project(), show_subjects=False))


@pytest.fixture(scope="session")
def text(page):
    return words_of(page)
