"""Which versions computed the results, as the report says it."""

from types import SimpleNamespace

import pytest

from brainfed.reporting.software import mixed_versions, software_of
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.made import Making, read, write


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
    return SimpleNamespace(variants=variants)


@pytest.fixture
def results(tmp_path):
    return {
        version: result(tmp_path / f"numpy-{version}", {"brainfed": "0.1.0", "numpy": version, "python": "3.11"})
        for version in ("2.3", "2.4")
    }


def test_a_table_of_one_version_needs_no_word(results):
    assert mixed_versions(experiment(variant("a", results["2.4"]), variant("b", results["2.4"]))) == []


def test_a_table_of_two_versions_names_them_with_their_methods(results):
    (sentence,) = mixed_versions(experiment(variant("a", results["2.4"]), variant("b", results["2.3"])))
    assert sentence.startswith("Several versions of numpy computed the results of this table (2.3: B; 2.4: A).")


def test_the_page_counts_results_by_version(results):
    cohort = SimpleNamespace(experiments=[experiment(variant("a", results["2.4"]), variant("b", results["2.3"]))])
    found = software_of([cohort])
    assert (found.results, found.unrecorded, found.adopted) == (2, 0, 0)
    assert "numpy\u00a02.3 (1 result) and 2.4 (1 result)" in found.listing
    assert "python\u00a03.11" in found.listing


def test_results_without_a_record_or_kept_on_request_are_counted(results, tmp_path):
    from dataclasses import replace

    unknown = tmp_path / "unknown" / "cost.json"
    unknown.parent.mkdir()
    unknown.write_text("{}")
    kept = results["2.3"].replace("cost.json", "predictions.parquet")
    write(replace(read(kept), versions={}, adopted=True))
    cohort = SimpleNamespace(experiments=[experiment(variant("a", str(unknown), results["2.3"]))])
    found = software_of([cohort])
    assert (found.results, found.unrecorded, found.adopted, found.listing) == (2, 2, 1, "")
