"""A SuperLink keeps nothing on the disk: one that was killed knows no site, and each comes again with its key."""

import socket

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.flower.certificates import make_certificate, make_key_pair, write_private
from brainfed.deployment.flower.folder import FlowerFolder
from brainfed.deployment.flower.processes import free_port, start_superlink, start_supernode, together
from brainfed.runtime.errors import UserError

pytestmark = pytest.mark.full("Processes of several sites over Flower take minutes.")

SITE = "north"
PATIENCE_S = 120


def test_a_supernode_ends_when_its_superlink_was_started_again_and_another_takes_its_place(tmp_path):
    folder, port = FlowerFolder(tmp_path), free_port()
    make_certificate(folder.certificate, folder.certificate_key, ["localhost"])
    make_key_pair(folder.private_key(SITE), folder.public_key(SITE))
    folder.write_connection(f"127.0.0.1:{port}")
    with together() as running:
        running.append(start_superlink(folder, [SITE], "127.0.0.1", port))
        running.append(start_supernode(folder, SITE, f"127.0.0.1:{port}", tmp_path / "socket"))
        first, node = running
        first.process.kill()
        first.process.wait()
        running.append(start_superlink(folder, [SITE], "127.0.0.1", port))
        node.process.wait(PATIENCE_S)
        running.append(start_supernode(folder, SITE, f"127.0.0.1:{port}", tmp_path / "socket"))
        assert running[-1].process.poll() is None


def test_a_port_that_another_program_holds_is_refused_before_the_superlink_starts(tmp_path):
    """Another SuperLink there would be taken for this one."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port}: expected it to be free for the sites, found .*in use"):
            start_superlink(FlowerFolder(tmp_path), [SITE], "127.0.0.1", port)


def test_private_files_and_their_folder_are_the_owners_alone(tmp_path):
    folder = FlowerFolder(tmp_path / "federation")
    folder.make()
    write_private(folder.control_secret, b"first")
    folder.control_secret.chmod(0o644)
    write_private(folder.control_secret, b"second")
    assert folder.control_secret.read_bytes() == b"second"
    assert folder.control_secret.stat().st_mode & 0o777 == 0o600
    assert folder.root.stat().st_mode & 0o777 == 0o700
    assert sorted(folder.root.iterdir()) == [folder.control_secret, folder.root / "keys"]
