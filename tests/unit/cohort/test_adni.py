"""config/adni.yaml reads invented tables with the public columns of ADNIMERGE and of UCSF's FreeSurfer table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from brainfed.cohort.phenotype import ingest
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import list_cohort
from brainfed.configuration import validate
from brainfed.imaging.morphometry import write_measures
from brainfed.runtime import UserError, read_arrays
from support.files.run_of_cohort import parts_of

CONFIG = Path(__file__).resolve().parents[3] / "config" / "adni.yaml"
PEOPLE = """"RID","PTID","VISCODE","SITE","COLPROT","EXAMDATE","DX_bl","AGE","PTGENDER","PTEDUCAT","APOE4","DX"
"2","011_S_0002","bl","11","ADNI1","2005-09-08","CN","74.3","Male","16","0","CN"
"3","011_S_0003","bl","11","ADNI1","2005-09-12","AD","81.3","Male","18","1","Dementia"
"3","011_S_0003","m06","11","ADNI1","2006-03-13","AD","81.3","Male","18","1","Dementia"
"4","022_S_0004","bl","22","ADNI1","2005-11-08","LMCI","67.5","Female","10","0","MCI"
"5","022_S_0005","bl","22","ADNI1","2005-09-07","EMCI","73.7","Female","16","","MCI"
"6","022_S_0006","bl","22","ADNI1","2005-09-07","AD","","Female","16","2","Dementia"
"""
SCANS = """"RID","VISCODE","EXAMDATE","OVERALLQC","TEMPQC","ST10CV","ST29SV","ST44CV","ST44SA","ST44TA","ST44TS","ST8SV"
"2","sc","2005-08-20","Pass","Pass","1500000","3500","1700","700","2.4","0.5",""
"3","sc","2005-08-22","Pass","Pass","1600000","2900","1500","650","2.1","0.6",""
"3","m06","2006-03-14","Pass","Pass","1600000","2800","1450","650","2.0","0.6",""
"4","sc","2005-09-18","Pass","Pass","1400000","3300","1600","690","2.3","0.5",""
"5","sc","2005-08-30","Fail","Fail","1","1","1","1","1","1",""
"6","bl","2005-08-30","Pass","Pass","1450000","","1500","640","2.2","0.5",""
"""


@pytest.fixture
def adni(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "resources" / "adni"
    folder.mkdir(parents=True)
    (folder / "ADNIMERGE.csv").write_text(PEOPLE)
    (folder / "UCSFFSX.csv").write_text(SCANS)
    return validate(CohortSettings, yaml.safe_load(CONFIG.read_text())["cohorts"]["adni"], "config")


def test_the_cohort_is_ad_and_mci_at_baseline(adni):
    listing = list_cohort("adni", adni)
    assert [(listed.subject, listed.site, listed.series) for listed in listing.subjects] == [
        ("3", "11", "3"),
        ("4", "22", "4"),
        ("5", "22", "5"),
        ("6", "22", "6"),
    ]
    people = ingest(listing.tables, adni, listing.absences).set_index("subject")
    assert people["diagnosis"].to_dict() == {"3": 1, "4": 0, "5": 0, "6": 1}
    assert people["sex"].tolist() == ["male", "female", "female", "female"]
    assert people["age"].isna().to_dict() == {"3": False, "4": False, "5": False, "6": True}


def test_measures_are_those_of_the_first_scan_that_passed(adni, tmp_path):
    out = parts_of(tmp_path)
    write_measures({subject: subject for subject in "3456"}, adni, out)
    file = read_arrays(out.series)
    assert file.metadata["regions"] == ["ST10CV", "ST29SV", "ST44CV", "ST44SA", "ST44TA"]
    assert file.subjects == ("3", "4")
    np.testing.assert_allclose(file.arrays["measures"][0], [1600000, 2900, 1500, 650, 2.1])
    problems = pd.read_parquet(out.quality).set_index("subject")["problem"]
    assert "found no row '5' in resources/adni/UCSFFSX.csv" in problems["5"]
    assert "an empty cell in resources/adni/UCSFFSX.csv, line 7, column 'ST29SV'" in problems["6"]


def test_two_scans_of_a_visit_are_refused_until_one_is_chosen(adni, tmp_path):
    with Path("resources/adni/UCSFFSX.csv").open("a") as file:
        file.write('"4","bl","2005-11-09","Pass","Pass","1400000","3300","1600","690","2.3","0.5",""\n')
    out = parts_of(tmp_path)
    with pytest.raises(
        UserError, match=r"found '4' in line 5 and line 8; .* choose among visits with `freesurfer.rows`"
    ):
        write_measures({"3": "3", "4": "4"}, adni, out)


def test_a_filter_without_matching_rows_is_refused(adni):
    with pytest.raises(UserError, match=r"expected rows with VISCODE among 'm99', found none among 6; fix `rows`"):
        list_cohort("adni", replace(adni, rows={"VISCODE": ("m99",)}))
    with pytest.raises(UserError, match="expected a column 'VISIT', found none"):
        list_cohort("adni", replace(adni, rows={"VISIT": ("bl",)}))
