"""Lines on the coordinator's terminal about sites that its guard refuses."""

import logging

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes

from brainfed.deployment.flower.certificates import fingerprint
from brainfed.deployment.flower.superlink.refusals import AGAIN_S, MOST, Refusals

SITE, STRANGER = (public_key_to_bytes(generate_key_pairs()[1]) for _ in range(2))

PUBLIC = (
    "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBIslxrUqNbERiTxbYy7PWNVwylXMKfZTzTR7pbsitGTk3ScQ"
    "jL2Djx62/lKvI4dHR2lKi/CjGpM5iY3tcHcAOwoNIQRLemP1QZ/fteOH5ZBHEx6f3pZN9kOGiHqNEO54wQ=="
)


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.WARNING, "brainfed")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_site_is_named_by_its_address_and_key_or_by_its_name_and_clock(lines):
    refused = Refusals({SITE: "oslo"})
    refused(STRANGER, "10.1.2.3", 0.0)
    refused(SITE, "10.1.2.4", -400.0)
    unknown, late = lines()
    assert unknown.startswith("a site at 10.1.2.3 is refused: expected a key of the study's sites, found SHA256:")
    assert late == (
        "site oslo is refused: expected the coordinator's time, found a clock that is 400 s behind; set both by NTP"
    )


def test_one_key_is_reported_now_and_then_and_a_flood_of_keys_not_at_all(lines):
    now = [0.0]
    refused = Refusals({SITE: "oslo"}, lambda: now[0])
    for now[0] in (0.0, 1.0, AGAIN_S - 1, AGAIN_S + 1):
        refused(SITE, "10.1.2.4", 400.0)
    assert len(lines()) == 2
    for _ in range(2 * MOST):
        refused(public_key_to_bytes(generate_key_pairs()[1]), "10.1.2.3", 0.0)
    assert len(lines()) == 2 + MOST


def test_a_flood_of_keys_does_not_hide_a_site_of_the_study(lines):
    refused = Refusals({SITE: "oslo"})
    for _ in range(2 * MOST):
        refused(public_key_to_bytes(generate_key_pairs()[1]), "10.1.2.3", 0.0)
    refused(SITE, "10.1.2.4", 400.0)
    assert lines()[-1].startswith("site oslo is refused")


def test_a_fingerprint_is_that_of_ssh_keygen():
    key = load_ssh_public_key(f"ecdsa-sha2-nistp384 {PUBLIC}".encode())
    assert fingerprint(key) == "SHA256:PP8kpmbHF3mLKOrK/6CluVgKwwU7AGqagA50vHaFqJk"
