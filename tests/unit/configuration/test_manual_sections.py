"""Sections on the parts of a study: keys that a part has in common with the part around it are printed once."""

from dataclasses import fields

from brainfed.configuration import ProjectSettings
from brainfed.configuration.manual import rows, section, study_sections
from brainfed.imaging import FeatureSettings, OneViewSettings, ViewSettings


def test_parts_come_in_the_order_of_the_project_s_fields():
    headings = [one.partition("\n")[0].removeprefix("## ").removesuffix(".NAME") for one in study_sections()]
    assert headings[0] == "The project"
    names = {field.name for field in fields(ProjectSettings)}
    top = [heading for heading in headings if heading in names]
    assert top == [field.name for field in fields(ProjectSettings) if field.name in top]
    assert {"cohorts", "split", "features", "graph", "variants", "experiments", "report"} <= set(top)


def test_a_view_lists_its_own_keys_and_links_to_those_of_features():
    page = section("features.views.NAME", ViewSettings, ("features", FeatureSettings))
    assert "It has the keys of [features](#features), except `views`, and:" in page
    common = {row.key for row in rows(OneViewSettings)}
    own = {row.key for row in rows(ViewSettings)} - common
    assert {"weight", "centre"} <= own and all(f"| `{key}` |" in page for key in own)
    assert not [key for key in common if f"| `{key}` |" in page]


def test_a_part_that_stands_alone_lists_every_key():
    page = section("features.views.NAME", ViewSettings)
    assert all(f"| `{field.name}` |" in page for field in fields(ViewSettings))
