"""The documents build as a site without a warning: no link leads nowhere, no page is left out of the contents."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_documents_build_as_a_site_that_loads_nothing(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", ".", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list((REPOSITORY / "docs").rglob("*.md")))
    for page in pages:
        content = page.read_text(encoding="utf-8")
        assert 'src="http' not in content and 'rel="stylesheet" href="http' not in content, page
