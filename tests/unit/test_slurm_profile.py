"""The SLURM profile: what it names exists and has no GPU, and it differs from the default profile where it must."""

import re
from pathlib import Path

import yaml

from brainfed.configuration import PAPER_FIGURES

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
RULES = {
    match[1]: match[0]
    for file in sorted((WORKFLOW / "rules").glob("*.smk"))
    for match in re.finditer(r"^rule (\w+):\n(?:(?!^\S).*\n)*", file.read_text(), re.MULTILINE)
}
UNNAMED = {
    f"{file.stem} {match.start()}": match[0]
    for file in sorted((WORKFLOW / "rules").glob("*.smk"))
    for match in re.finditer(r"^ +rule:\n(?:(?!^\S).*\n)*", file.read_text(), re.MULTILINE)
}
"""Rules that loops make, and name."""
REUSED = {
    match[2]: match[1]
    for file in sorted((WORKFLOW / "rules").glob("*.smk"))
    for match in re.finditer(r"^use rule (\w+) as (\w+) with:", file.read_text(), re.MULTILINE)
}
"""Rule -> the rule whose script and resources it takes over."""


def profile(name):
    return yaml.safe_load((WORKFLOW / "profiles" / name / "profile.yaml").read_text())


def groups():
    return dict(entry.split("=") for entry in profile("slurm")["groups"])


def test_what_decides_about_reruns_is_the_same_on_a_cluster():
    here, there = profile("default"), profile("slurm")
    assert {key: there.get(key) for key in here if key != "resources"} == {
        key: value for key, value in here.items() if key != "resources"
    }


def test_grouped_rules_exist_and_use_no_gpu():
    assert "train_method" in RULES
    figures = {f"draw_{kind}" for kind in PAPER_FIGURES}
    assert groups().keys() <= RULES.keys() | REUSED.keys() | figures
    assert not [rule for rule in groups() if "gpu=" in RULES.get(REUSED.get(rule, rule), "")]


def test_every_drawing_is_grouped():
    drawings = {rule for rule in RULES if rule.startswith("draw_")} | {f"draw_{kind}" for kind in PAPER_FIGURES}
    assert {rule for rule, group in groups().items() if group == "figures"} >= drawings | {"write_report"}


def test_groups_have_components_of_their_own_names():
    components = [entry.split("=")[0] for entry in profile("slurm")["group-components"]]
    assert set(components) <= set(groups().values())


def test_memory_and_time_of_every_rule_grow_with_the_attempts():
    working = {name: text for name, text in (RULES | UNNAMED).items() if "script:" in text}
    assert working.keys() & UNNAMED.keys()
    asks = re.compile(r"\*\*job_needs\(mem_mb=\d+, runtime=\d+\),")
    assert [name for name, text in working.items() if not asks.search(text)] == []
    grow = re.findall(
        r'"(\w+)": lambda wildcards, attempt: \1 \* attempt,', (WORKFLOW / "rules" / "common.smk").read_text()
    )
    assert grow == ["mem_mb", "runtime"]


def test_the_page_and_the_profile_agree_about_retries():
    page = (WORKFLOW.parent / "docs" / "how-to" / "slurm.md").read_text(encoding="utf-8")
    assert re.findall(r"`retries: (\d+)`", page) == [str(profile("slurm")["retries"])]
    assert "`GraceTime`" in page and "`--retries 0`" in page


def test_no_rule_retries_by_itself():
    # SLURM's plugin would apply it twice over: within the job, and by submitting it again.
    assert [name for name, text in RULES.items() if "retries:" in text] == []


def test_downloads_stay_on_the_machine_that_was_asked():
    local = {name for name, text in RULES.items() if "localrule: True" in text}
    assert local == {name for name in RULES if name.startswith("fetch_")} != set()
