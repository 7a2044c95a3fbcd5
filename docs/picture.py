"""The picture of the README: the first screen of the demo's report, `make picture` after `make run`.

The picture holds a digest of the files that draw this screen, so a test shows when it is out of date.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "docs" / "report.png"
REPORT = REPOSITORY / "results" / "reports" / "demo.html"
DRAWN_BY = (
    "workflow/brainfed/reporting/templates/report.html.j2",
    "workflow/brainfed/reporting/templates/style.css",
    "workflow/brainfed/reporting/templates/charts.js",
    "workflow/brainfed/reporting/text/_first_screen.py",
    "workflow/brainfed/reporting/text/_answer.py",
    "workflow/brainfed/reporting/panels/_known.py",
    "workflow/brainfed/reporting/_sections.py",
    "workflow/brainfed/reporting/_scored.py",
    "workflow/brainfed/reporting/_rounding.py",
    "workflow/brainfed/reporting/_variants.py",
    "workflow/brainfed/reporting/charts/_scores.py",
    "workflow/brainfed/reporting/charts/_style.py",
    "workflow/report/headline.rst",
    "config/config.yaml",
)
DIGEST = "drawn-by"
"""Key of the digest in the picture."""
SIZE = (1200, 900)


def digest() -> str:
    """SHA-256 of the files that draw the first screen."""
    return hashlib.sha256(b"".join((REPOSITORY / path).read_bytes() for path in DRAWN_BY)).hexdigest()


def main() -> None:
    """Draw the report in a headless browser."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None or not REPORT.exists():
        sys.exit("docs/picture.py: expected a chromium on PATH and results/reports/demo.html; run `make run` first.")
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        size = f"--window-size={SIZE[0]},{SIZE[1]}"
        flags = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
        )
        command = [browser, *flags, size, f"--screenshot={shot}", REPORT.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        text = PngInfo()
        text.add_text(DIGEST, digest())
        Image.open(shot).convert("RGB").save(PICTURE, pnginfo=text, optimize=True)


if __name__ == "__main__":
    main()
