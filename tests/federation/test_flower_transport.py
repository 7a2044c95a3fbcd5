"""Packets between a coordinator and three sites over a real SuperLink with TLS and known keys, and their sockets."""

import json
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.runtime import UserError
from brainfed.sites.flower import (
    FlowerFolder,
    Running,
    make_certificate,
    make_key_pair,
    site_key,
    start,
    start_run,
    start_superlink,
    start_supernode,
    together,
    write_private,
)
from brainfed.sites.flower._certificates import fingerprint
from brainfed.sites.flower._processes import SECRET_HEADER, stop
from support.processes.awaited import until_true
from support.sites.flower_sites import SITES, numbers, tensors
from support.sites.flower_strangers import PROTOBUF, ask_another_site, private_key, raw, routes, signed, stranger
from support.sites.free_port import free_port

pytestmark = pytest.mark.full("Processes of several sites over Flower take minutes.")

TESTS = Path(__file__).parents[1]
FLWR = Path(sys.executable).with_name("flwr")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    root = tmp_path_factory.mktemp("study")
    folder = FlowerFolder(root)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join((str(TESTS.parent / "workflow"), str(TESTS)))
    make_certificate(folder.certificate, folder.certificate_key, ["localhost"])
    for site in SITES:
        make_key_pair(folder.private_key(site), folder.public_key(site))
    port = free_port()
    address = f"127.0.0.1:{port}"
    folder.write_connection(address)
    folder.write_app("support.sites.flower_sites:coordinate", SITES, {})
    sockets = {site: root / site / "socket" for site in SITES}
    try:
        with together() as running:
            running.append(start_superlink(folder, SITES, "127.0.0.1", port))
            for site in SITES:
                trainer = [sys.executable, "-m", "support.sites.flower_sites", site, str(sockets[site])]
                running.append(start(site, trainer, folder.environment(), folder.log(site)))
            nodes = {site: start_supernode(folder, site, address, sockets[site]) for site in SITES}
            running.extend(nodes.values())
            run = start_run(folder)
            running.append(run)
            until(root / "stop-east", run, folder)
            numbers_of = dict(zip(SITES, map(node_number, nodes.values()), strict=True))
            ask_another_site(folder, address, "north", numbers_of["north"], numbers_of["south"], run_number(folder))
            until_true(lambda: b"NotOfTheCoordinatorError" in nodes["south"].log.read_bytes())
            stop([nodes["east"]])
            (root / "stop-east-done").touch()
            until(root / "start-east", run, folder)
            running.append(start_supernode(folder, "east", address, sockets["east"]))
            until(root / "result.json", run, folder)
            run.process.wait(20)
            found = json.loads((root / "result.json").read_text())
            yield {
                "result": found,
                "root": root,
                "code": run.process.returncode,
                "running": running,
                "address": address,
            }
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def node_number(node: Running) -> int:
    return int(re.findall(r"SuperNode ID: (\d+)", node.log.read_text())[-1])


def run_number(folder: FlowerFolder) -> int:
    return int(re.findall(r"run_id=(\d+)", folder.log("superlink").read_text())[-1])


def until(path: Path, run: Running, folder: FlowerFolder) -> None:
    def done() -> bool:
        return path.exists()

    try:
        run.wait_until(done, 60)
    except UserError as error:
        log = folder.log("superlink").read_text()[-3000:]
        raise AssertionError(f"{error}\n{log}") from error


def test_all_sites_are_found_by_their_names_and_give_back_what_they_were_sent(study):
    result = study["result"]
    assert result["names"] == {"0": "north", "1": "south", "2": "east"}
    assert result["same"] == [True] * 3
    assert result["order"] == [list(tensors())] * 3
    assert study["code"] == 0


def test_a_mistake_at_a_site_comes_back_as_its_sentence(study):
    assert study["result"]["refused"] == [["refused", {"sentence": "north refuses"}]]


def test_a_stopped_site_is_missing_and_is_found_again_after_its_restart(study):
    assert study["result"]["without east"] == [0, 1]
    # North and south answered a first request, one without east, and this one; south not the one that north sent.
    assert study["result"]["with east"] == {"0": 3, "1": 3, "2": 2}


def test_a_secure_sum_is_the_sum_and_no_upload_shows_a_site(study):
    total = np.load(study["root"] / "sum.npy")
    np.testing.assert_allclose(total, sum(numbers(site) for site in SITES), atol=1e-12)
    steps = {site: np.rint(numbers(site).ravel() * 2.0**42).astype(np.int64).view(np.uint64) for site in SITES}
    for site in SITES:
        upload = np.load(study["root"] / site / "upload.npy")
        assert not np.any(upload == steps[site])
        # Plain numbers use 51 bits and a sign; a mask leaves the bits above as often set as not.
        assert 0.3 < np.mean((upload >> np.uint64(57)) & np.uint64(1)) < 0.7
        assert abs(np.corrcoef(upload.astype(float), numbers(site).ravel())[0, 1]) < 0.3


@pytest.fixture
def port(study: dict[str, Any]) -> Iterator[httpx.Client]:
    """The coordinator's port, for one who has its certificate."""
    trust = ssl.create_default_context(cafile=str(FlowerFolder(study["root"]).certificate))
    with httpx.Client(base_url=f"https://{study['address']}", verify=trust, headers=PROTOBUF, timeout=10) as client:
        yield client


def listed(folder: FlowerFolder) -> dict[str, Any]:
    """What `flwr list` says, with the coordinator's secret if the folder has one."""
    command = [str(FLWR)]
    if folder.control_secret.exists():
        command = [
            sys.executable,
            "-m",
            "brainfed.sites.flower.program",
            str(folder.control_secret),
            "flwr",
        ]
    command += ["list", "study", "--format", "json"]
    said = subprocess.run(command, env=folder.environment(), capture_output=True, text=True, check=True).stdout
    return json.loads(said)


def test_a_stranger_is_refused_at_every_route_of_flower(port):
    found = routes()
    assert len(found) > 70
    answers = {route: port.request(*route) for route in found}
    assert {route for route, answer in answers.items() if answer.status_code != 404} == set()
    assert {answer.text for (method, _), answer in answers.items() if method != "HEAD"} == {"not found\n"}


def test_a_site_reaches_only_what_sites_need_and_a_stranger_not_even_that(study, port):
    folder = FlowerFolder(study["root"])
    north = private_key(folder.private_key("north"))
    make_key_pair(folder.private_key("west"), folder.public_key("west"))
    west = private_key(folder.private_key("west"))
    pull = "/v1/fleet/pull-messages"
    assert port.post(pull, headers=signed(west)).text == "not found\n"
    assert "SuperNode authentication" in port.post(pull, headers=signed(north)).text
    others = ("/v1/control/list-runs", "/v1/control/start-run", "/v1/runtime/acquire-task", "/v1/fleet/register-node")
    assert [port.post(path, headers=signed(north)).status_code for path in others] == [404] * 4


def test_a_site_with_an_unknown_key_is_refused_with_the_reason_on_both_sides(study):
    folder = FlowerFolder(study["root"])
    make_key_pair(folder.private_key("far"), folder.public_key("far"))
    with pytest.raises(UserError, match=r"the coordinator refuses far: its key, SHA256:\S{43}, is none of the study's"):
        start_supernode(folder, "far", study["address"], study["root"] / "far" / "socket")
    own = fingerprint(site_key(folder.private_key("far")).public_key())
    (line,) = [line for line in folder.log("coordinator").read_text().splitlines() if own in line]
    assert "WARNING a site at 127.0.0.1 is refused: expected a key of the study's sites, found" in line


def test_the_coordinators_own_processes_show_a_secret(study, port):
    secret = FlowerFolder(study["root"]).control_secret.read_text()
    assert port.post("/v1/control/list-runs", headers={SECRET_HEADER: secret}).status_code == 200
    for wrong in ("", secret[:-1], secret[::-1]):
        assert port.post("/v1/control/list-runs", headers={SECRET_HEADER: wrong}).status_code == 404


@pytest.mark.parametrize(
    "line",
    [
        *(
            "POST //v1/control/list-runs",
            "POST /v1/fleet/../control/list-runs",
            "POST /v1/fleet/%2e%2e/control/list-runs",
        ),
        *("POST /v1%2fcontrol%2flist-runs", "POST /V1/Control/List-Runs", "POST /v1/control/list-runs?a=/v1/fleet/"),
        *("POST https://hub/v1/control/list-runs", "post /v1/control/list-runs", "GET /docs", "GET /openapi.json"),
    ],
)
def test_no_writing_of_a_path_leads_a_stranger_in(study, line):
    headers = "host: hub/v1/fleet/pull-messages?\r\nx-forwarded-for: 127.0.0.1\r\ncontent-type: application/protobuf"
    request = f"{line} HTTP/1.1\r\n{headers}\r\ncontent-length: 0\r\n\r\n"
    answer = raw(study["address"], FlowerFolder(study["root"]).certificate, request.encode())
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))


def test_the_body_of_a_stranger_is_not_awaited(study):
    request = b"POST /v1/fleet/push-object HTTP/1.1\r\nhost: hub\r\ncontent-length: 10000000000\r\n\r\n"
    answer = raw(study["address"], FlowerFolder(study["root"]).certificate, request)
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"connection: close" in answer.lower()


def test_flowers_own_commands_start_and_show_nothing_without_the_secret(study, tmp_path):
    folder, executed = FlowerFolder(study["root"]), tmp_path / "executed"
    outside = stranger(tmp_path / "outside", folder, study["address"], executed)
    command = [str(FLWR), "run", str(outside.app), "study", "--stream"]
    begun = subprocess.run(command, env=outside.environment(), capture_output=True, text=True)
    assert begun.returncode != 0
    assert "404 Not Found" in begun.stderr
    assert "404 Not Found" in listed(outside)["error-message"]
    assert len(listed(folder)["runs"]) == 1
    assert not executed.exists()


def test_private_files_are_the_users_alone(study):
    folder = FlowerFolder(study["root"])
    private = [folder.certificate_key, folder.control_secret, folder.private_key("north"), folder.root / "north/socket"]
    assert [path.stat().st_mode & 0o777 for path in private] == [0o600] * 4
    assert (study["root"] / "north").stat().st_mode & 0o777 == 0o700


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
