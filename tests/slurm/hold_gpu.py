"""Hold the GPU that the job is given until another job holds one too and a little longer; write which one, and when."""

import json
import time
from pathlib import Path

from brainfed.runtime.devices import lease

with lease(snakemake.resources.gpu) as leased:
    begun = time.monotonic()
    folder = Path(snakemake.output[0]).parent
    (folder / f"begun-{snakemake.wildcards.number}").touch()
    while len(list(folder.glob("begun-*"))) < 2 and time.monotonic() < begun + 60:
        time.sleep(0.1)
    time.sleep(0.5)
    held = {"devices": leased.uuids, "message": leased.message, "begun": begun, "ended": time.monotonic()}
Path(snakemake.output[0]).write_text(json.dumps(held))
