"""How large a report is, and how soon a browser can use it.

    python benchmarks/report_opening.py results/reports/demo.html

Opens the page several times in a headless Chromium with an empty profile, in real time, and prints the medians: until
the page can be read and scrolled (DOMContentLoaded, all scripts have run), until it is loaded, until the first chart
answers a pointer.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--window-size=1400,900",
)  # fmt: skip
LISTEN = """<script>
addEventListener("load", () => {
  const wait = setInterval(() => {
    const [page] = performance.getEntriesByType("navigation");
    if (!document.querySelector(".drawing svg.marks") || !page.loadEventEnd) return;
    clearInterval(wait);
    const nodes = document.querySelectorAll("*").length;
    const times = [page.domContentLoadedEventEnd, page.loadEventEnd, performance.now()].map(Math.round);
    console.log(`TIMES ${times.join(" ")} ${nodes} END`);
  }, 10);
});
</script>"""
SECONDS = 60


def opened(browser: str, page: Path) -> tuple[int, ...]:
    """Milliseconds until readable, loaded, interactive; number of elements."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "page.html"
        before, _, after = page.read_text(encoding="utf-8").rpartition("</body>")
        copy.write_text(f"{before}{LISTEN}</body>{after}", encoding="utf-8")
        command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", "--remote-debugging-port=0", copy.as_uri()]
        running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert running.stderr is not None
        try:
            for line in running.stderr:
                if found := re.search(r"TIMES ([\d ]+) END", line):
                    return tuple(map(int, found[1].split()))
        finally:
            running.kill()
            running.wait(SECONDS)
    raise SystemExit(f"{page}: expected times from the browser, found none.")


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("expected a chromium on PATH, found none.")
    times = [opened(browser, given.page) for _ in range(given.times)]
    readable, loaded, first, nodes = (int(statistics.median(column)) for column in zip(*times, strict=True))
    print(
        f"{given.page.name}: {given.page.stat().st_size / 1e6:.1f} MB, {nodes} elements; median of {given.times}: "
        f"readable after {readable} ms, loaded after {loaded} ms, first chart interactive after {first} ms"
    )


if __name__ == "__main__":
    main()
