"""Write the manual and the schema of this checkout: `python -m brainfed.configuration.manual`."""

from pathlib import Path

from brainfed.configuration.manual.page import manual
from brainfed.configuration.manual.schema import schema


def main() -> None:
    """Write `config/README.md` and `workflow/schemas/config.schema.json`; a test fails when they drift."""
    workflow = Path(__file__).resolve().parents[3]
    (workflow / "schemas").mkdir(exist_ok=True)
    (workflow / "schemas" / "config.schema.json").write_text(schema(), encoding="utf-8")
    (workflow.parent / "config" / "README.md").write_text(manual(), encoding="utf-8")


if __name__ == "__main__":
    main()
