"""The command line: `brainfed check` and `brainfed predict` (`python -m brainfed` where it is not installed)."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from pathlib import Path

from brainfed.checking import as_text, check_project
from brainfed.configuration import COORDINATE, JOIN, REQUIRE_FLOWER
from brainfed.runtime import UserError, resolve

PREDICT = "brainfed.prediction.command:predict"
"""Named as a string: a check must not wait for torch."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the tools; 1 if it finds what stops it, else 0."""
    parser = argparse.ArgumentParser(prog="brainfed", description="Tools beside the workflow.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "check", help="list what will go wrong in a run", description="Read tables and files, list what is wrong."
    )
    check.add_argument("config", type=Path, help="the file that --configfile names")
    check.add_argument("--json", action="store_true", help="print a list of findings for programs")
    check.add_argument("--scans", action="store_true", help="read the voxels of all images, not of some at each site")
    joined = commands.add_parser(
        "join",
        help="train with other sites",
        description="Prepare this site's data, train with the other sites, and leave. What leaves is listed first.",
    )
    joined.add_argument("config", type=Path, help="this site's config, which extends the study's")
    joined.add_argument("--cores", default="all", help="for Snakemake (default: all)")
    joined.add_argument("--gpus", type=int, default=0, help="for Snakemake (default: none)")
    led = commands.add_parser(
        "coordinate",
        help="lead a study of several sites",
        description="Answer the sites of a study until all have left.",
    )
    led.add_argument("config", type=Path, help="the study's config")
    _add_predict(commands.add_parser("predict", help="score new patients by a model that `snakemake models` kept"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # A terminal that is not UTF-8 shows a code for what it cannot.
            stream.reconfigure(errors="backslashreplace")
    given = parser.parse_args(arguments)
    if given.command == "predict":
        return int(resolve(PREDICT)(given))
    return _check(given) if given.command == "check" else _between_sites(given)


def _version() -> str:
    try:
        return f"brainfed {version('brainfed')}"
    except PackageNotFoundError:
        return "brainfed, not installed: `make install` does it"


def _check(given: argparse.Namespace) -> int:
    """Print what will go wrong; 1 if something stops the run, else 0."""
    findings = check_project(given.config, few=True, every_scan=given.scans)
    try:
        shown = [asdict(finding) for finding in findings]
        print(json.dumps(shown, indent=1) if given.json else as_text(findings), flush=True)
    except BrokenPipeError:  # As after `| head`: nobody reads on. Python would say so again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(any(finding.severity == "stops" for finding in findings))


def _between_sites(given: argparse.Namespace) -> int:
    """Run a part in a study of several sites; 1 and one sentence if it fails."""
    try:
        # By name: a check imports neither Flower nor torch, and Flower is installed only where sites are apart.
        resolve(REQUIRE_FLOWER)()
        if given.command == "join":
            resolve(JOIN)(given.config, given.cores, given.gpus)
        else:
            resolve(COORDINATE)(given.config)
    except ModuleNotFoundError as error:
        if error.name not in ("flwr", "cryptography"):
            raise
        print(f"expected the package {error.name}, found none; run `make install-sites`.", file=sys.stderr)
        return 1
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; run it again to go on", file=sys.stderr)
        return 130
    return 0


def _add_predict(predict: argparse.ArgumentParser) -> None:
    predict.description = (
        "Score new patients, and say how far their scans lie from the training data. No medical device."
    )
    predict.add_argument("model", type=Path, help="folder of a model: results/COHORT/models/VARIANT, or a copy of it")
    predict.add_argument(
        "--series",
        nargs="+",
        required=True,
        metavar="FILE",
        help="region series, one file a patient or a shard of several",
    )
    predict.add_argument("--institution", metavar="NAME", help="where the patients were scanned, as the card names it")
    predict.add_argument("--fold", type=int, metavar="N", help="score by the model of a fold, from 0, as a check")
    predict.add_argument("--output", type=Path, metavar="TSV", help="write the table here in place of printing it")


if __name__ == "__main__":
    sys.exit(main())
