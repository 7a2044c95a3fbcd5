"""A study of three sites on one machine: a folder a site with its own subjects, one of the coordinator."""

import csv
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from brainfed.configuration import load_plan, read_config
from brainfed.sites.flower import FlowerFolder, make_certificate, make_key_pair
from support.sites.free_port import free_port
from workflow.project import ALONE, Project, copy_workflow

SITES = ("east", "north", "south")
COHORT = "home"
SUBJECTS, REGIONS, VOLUMES = 16, 8, 55

VARIANTS = {
    "ridge-alone": {"method": "ridge", "training": "local", "alphas": [1.0]},
    "mlp": {"method": "fedmlp", "rounds": 2, "local_epochs": 2},
    "gcn": {"method": "fedgcn", "rounds": 2, "local_epochs": 2},
    "inpainted": {
        "method": "fedni",
        "rounds": 2,
        "local_epochs": 2,
        "inpainting": {"rounds": 2, "local_epochs": 2},
    },
    "logistic": {"method": "logistic-federated", "costs": [0.1, 1.0], "max_rounds": 6},
    "ridge-joint": {"method": "ridge-federated", "alphas": [1.0, 10.0], "tolerance": 0.1, "rounds": 4},
    "tangent": {"method": "fedtangent", "alphas": [1.0], "tolerance": 0.01, "rounds": 4},
    "clusters": {"method": "gcfl", "rounds": 3, "first_cut": 1, "eps1": 10.0, "eps2": 0.0},
    "windows": {
        "method": "fglbc",
        "rounds": 2,
        "window": 20,
        "channels": 4,
        "kernel": 3,
        "strides": [2, 1],
        "batch": 4,
        "epsilon": 50.0,
        "delta": 0.01,
    },
}
METHODS = os.environ.get("BRAINFED_METHODS", "ridge-alone tangent windows").split()
"""Variants of a test: those with all the ways to cross. `BRAINFED_METHODS=all` has every one, in ten minutes."""
if METHODS == ["all"]:
    METHODS = list(VARIANTS)
STUDY = {
    "project": "across",
    "split": {"institutions": "sites", "folds": 2, "repeats": 1},
    "graph": {"scope": "local", "k": 3, "embedding_dimensions": 4},
    "variants": VARIANTS,
    "experiments": {"methods": {"variants": METHODS, "reference": "ridge-alone"}},
}
COHORT_OF_ALL = {"source": "timeseries", "atlas": "eight", "regions": REGIONS, "shards": 1}


def names_of(site):
    """The subjects of a site; ids of sites take turns in their order."""
    return [f"sub-{number:03d}" for number in range(SITES.index(site), len(SITES) * SUBJECTS, len(SITES))]


def write_data(folder, sites):
    """The table and the series of the subjects of some sites."""
    resources = folder / "resources"
    (resources / "series").mkdir(parents=True)
    rows = []
    for site in sites:
        for name in names_of(site):
            number = int(name.removeprefix("sub-"))
            patient = number // len(SITES) % 2
            random = np.random.default_rng(number)
            series = random.standard_normal((VOLUMES, REGIONS))
            series[:, : 3 + patient] += random.standard_normal((VOLUMES, 1))
            header = "\t".join(f"#{region}" for region in range(1, REGIONS + 1))
            path = resources / "series" / f"{name}.1D"
            np.savetxt(path, series, fmt="%.6f", delimiter="\t", header=header, comments="")
            sex = ("male", "female")[number // 2 % 2]
            rows.append([name, site, 20 + number % 10, sex, ("control", "patient")[patient]])
    with (resources / "participants.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["participant_id", "site", "age", "sex", "diagnosis"], *sorted(rows)])


class Study:
    """Folders and processes of one study.

    Args:
        root: below which all folders lie.
        changes: keys of the study that replace those of `STUDY`.
    """

    def __init__(self, root, **changes):
        self.root, self.port = root, free_port()
        self.study = STUDY | changes
        self.study["study"] = {"sites": list(SITES), "address": f"127.0.0.1:{self.port}", "least": 2, "wait": 400.0}
        self.study["study"]["accept_reconstruction"] = True
        self.study["study"] |= {"noise": "study", **changes.get("study", {})}
        for site in SITES:
            self._site(site)
        self._coordinator()

    def simulation(self):
        """The project that has all subjects in one place, not run yet."""
        folder = self.root / "together"
        folder.mkdir()
        copy_workflow(folder)
        write_data(folder, SITES)
        config = {key: value for key, value in self.study.items() if key != "study"}
        paths = {"phenotype": "resources/participants.csv", "series": "resources/series/{file}.1D"}
        (folder / "config.yaml").write_text(yaml.safe_dump(config | {"cohorts": {COHORT: COHORT_OF_ALL | paths}}))
        return Project(folder)

    @contextmanager
    def running(self, *names):
        """Processes of some sites, and of the `coordinator`, by name; they are ended at the end."""
        started = {}
        try:
            for name in names:
                started[name] = self.start(name)
            yield started
        finally:
            for process in started.values():
                process.terminate()
            for process in started.values():
                process.wait(30)

    @contextmanager
    def beside(self, name, at):
        """A further process of a site, in another folder."""
        process = self.start(name, at=at)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)

    def start(self, name, *, at=None, environment=None):
        """A process of a site or of the coordinator; its output is in `log(name)`.

        Args:
            name: of the site, or `coordinator`.
            at: name of its folder, and of its log, if it is another.
            environment: additions.
        """
        words = ["coordinate", "study.yaml"] if name == "coordinator" else ["join", "site.yaml", "--cores", "1"]
        folder = self.root / (at or name)
        own = ALONE | {"PYTHONPATH": str(folder / "workflow")} | (environment or {})
        with self.log(at or name).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "brainfed", *words], cwd=folder, env=os.environ | own, stdout=log, stderr=log
            )

    def wait(self, processes, seconds):
        """Wait until all processes have ended well.

        Raises:
            AssertionError: one ended with an error, or not in time; with the ends of all logs.
        """
        end = time.monotonic() + seconds
        while any(process.poll() is None for process in processes.values()):
            failed = [name for name, process in processes.items() if process.poll()]
            if failed or time.monotonic() > end:
                logs = "\n".join(f"== {name}\n{self.log(name).read_text()[-1500:]}" for name in processes)
                raise AssertionError(f"{failed or 'not in time'}:\n{logs}")
            time.sleep(0.2)

    def log(self, name):
        """The output of a process."""
        return self.root / f"{name}.log"

    def _site(self, site):
        folder = self.root / site
        folder.mkdir()
        copy_workflow(folder)
        write_data(folder, [site])
        self._write_study(folder)
        own = {"phenotype": "resources/participants.csv", "series": "resources/series/{file}.1D"}
        (folder / "site.yaml").write_text(
            yaml.safe_dump({"extends": "study.yaml", "cohorts": {COHORT: own}, "study": {"site": site}})
        )
        flower = FlowerFolder(folder / "federation")
        make_key_pair(flower.private_key(site), flower.public_key(site))

    def _coordinator(self):
        folder = self.root / "coordinator"
        folder.mkdir()
        copy_workflow(folder)
        self._write_study(folder)
        flower = FlowerFolder(folder / "federation")
        flower.root.mkdir()
        (flower.root / "keys").mkdir()
        make_certificate(flower.certificate, flower.certificate_key, ["127.0.0.1"])
        for site in SITES:
            own = FlowerFolder(self.root / site / "federation")
            own.certificate.write_bytes(flower.certificate.read_bytes())
            flower.public_key(site).write_bytes(own.public_key(site).read_bytes())

    def _write_study(self, folder):
        (folder / "study.yaml").write_text(yaml.safe_dump(self.study | {"cohorts": {COHORT: COHORT_OF_ALL}}))


def predictions_of(folder):
    """Files of the predictions of all variants, of the config in a folder."""
    plan = load_plan(read_config(folder / "config.yaml"))
    regime = plan.experiments["methods"].regime.name
    variants = [variant.name for variant in plan.experiments["methods"].variants]
    return [f"results/{COHORT}/methods/{regime}/{variant}/repeat-0/predictions.parquet" for variant in variants]


def result(folder, variant, name="predictions.parquet"):
    """A result file of a variant."""
    (found,) = Path(folder).glob(f"results/{COHORT}/methods/*/{variant}/repeat-0/{name}")
    return found


def scores(study, place, variant):
    """The predictions of a variant in a folder of the study, by subject."""
    return pd.read_parquet(result(study.root / place, variant)).set_index("subject").sort_index()


def crossings(study, place, variant):
    """The ledger of a variant in a folder of the study."""
    return json.loads(result(study.root / place, variant, "cost.json").read_text())["crossings"]


def added(rows):
    """(stage, name, direction) -> tensors and bytes."""
    sums = {}
    for row in rows:
        held = sums.setdefault((row["stage"], row["name"], row["direction"]), [0, 0])
        held[0] += row["tensors"]
        held[1] += row["bytes"]
    return sums
