"""The command line: `brainfed check CONFIG` (`python -m brainfed check CONFIG` where it is not installed)."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from brainfed.checking.finding import as_text
from brainfed.checking.project import check_project


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what will go wrong; 1 if something stops the run, else 0."""
    parser = argparse.ArgumentParser(prog="brainfed", description="Tools beside the workflow.")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "check", help="list what will go wrong in a run", description="Read tables and headers, list what is wrong."
    )
    check.add_argument("config", type=Path, help="the file that --configfile names")
    check.add_argument("--json", action="store_true", help="print a list of findings for programs")
    given = parser.parse_args(arguments)
    findings = check_project(given.config)
    print(json.dumps([asdict(finding) for finding in findings], indent=1) if given.json else as_text(findings))
    return int(any(finding.severity == "stops" for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
