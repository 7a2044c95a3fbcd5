"""A SuperLink keeps nothing on the disk: one that was killed knows no site, and each comes again with its key."""

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.flower.certificates import make_certificate, make_key_pair
from brainfed.deployment.flower.folder import FlowerFolder
from brainfed.deployment.flower.processes import free_port, register, start_superlink, start_supernode, together

SITE = "north"
PATIENCE_S = 120


def test_a_supernode_ends_when_its_superlink_was_started_again_and_another_takes_its_place(tmp_path):
    folder, port = FlowerFolder(tmp_path), free_port()
    make_certificate(folder.certificate, folder.certificate_key, ["localhost"])
    make_key_pair(folder.private_key(SITE), folder.public_key(SITE))
    folder.write_connection(f"127.0.0.1:{port}")
    with together() as running:
        running.append(start_superlink(folder, [SITE], "127.0.0.1", port))
        register(folder, [SITE])
        running.append(start_supernode(folder, SITE, f"127.0.0.1:{port}", tmp_path / "socket"))
        first, node = running
        first.process.kill()
        first.process.wait()
        running.append(start_superlink(folder, [SITE], "127.0.0.1", port))
        register(folder, [SITE])
        node.process.wait(PATIENCE_S)
        running.append(start_supernode(folder, SITE, f"127.0.0.1:{port}", tmp_path / "socket"))
        assert running[-1].process.poll() is None
