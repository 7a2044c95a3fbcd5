"""Who may ask the SuperLink what, and who hears why he may not."""

import asyncio
import base64
import logging

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes

from brainfed.sites.flower._certificates import fingerprint
from brainfed.sites.flower._processes import SECRET_HEADER
from brainfed.sites.flower.superlink import AGAIN_S, MOST, SITE_PATHS, Guard, Refusals
from support.sites.flower_strangers import routes, signed

SECRET = "a" * 64
SITE, STRANGER = generate_key_pairs()[0], generate_key_pairs()[0]
RSA = public_key_to_bytes(rsa.generate_private_key(65537, 2048).public_key())
KEY = public_key_to_bytes(SITE.public_key())
PULL = "/v1/fleet/pull-messages"
START = "/v1/control/start-run"
ROUTES = routes()
OWN = {SECRET_HEADER: SECRET}


def request(path=PULL, headers=(), refused=lambda *_: None, **scope):
    """What the guard answers, and what it passes on."""
    passed, sent = [], []

    async def app(scope, receive, send):
        passed.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive():
        raise AssertionError("the guard read the body")

    async def send(message):
        sent.append(message)

    pairs = list(headers.items() if isinstance(headers, dict) else headers)
    given = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
    }
    guard = Guard(app, SECRET, {KEY: "oslo"}, refused)
    asyncio.run(guard({**given, **scope}, receive, send))
    return sent[0].get("status", sent[0]["type"]), passed


def refused(*arguments, **scope):
    status, passed = request(*arguments, **scope)
    return status in (404, "websocket.close") and not passed


@pytest.mark.parametrize("path", sorted(SITE_PATHS))
def test_a_site_reaches_what_a_supernode_asks_for(path):
    assert ("POST", path) in ROUTES
    assert request(path, signed(SITE))[0] == 200
    assert refused(path)
    assert refused(path, signed(STRANGER))


def test_a_site_reaches_nothing_else_of_flower():
    others = {(method, path) for method, path in ROUTES if method != "POST" or path not in SITE_PATHS}
    assert len(others) > 60
    assert all(refused(path, signed(SITE), method=method) for method, path in others)


@pytest.mark.parametrize("path", [START, "/v1/runtime/acquire-task", "/openapi.json", PULL])
def test_own_processes_reach_everything(path):
    assert request(path, OWN)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        (),
        {SECRET_HEADER: ""},
        {SECRET_HEADER: SECRET[:-1]},
        {SECRET_HEADER: SECRET.upper()},
        {SECRET_HEADER: SECRET + "é"},
        {"x-forwarded-for": "127.0.0.1"},
        [(SECRET_HEADER, SECRET), (SECRET_HEADER, SECRET)],
    ],
)
def test_a_secret_is_exact_and_shown_once(headers):
    assert refused(START, headers)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/v1/fleet/../control/start-run",
            "/v1/fleet/pull-messages/../../control/start-run",
            "//v1/control/start-run",
        ),
        *(
            "/v1//control/start-run",
            "/v1/control/start-run/",
            "/V1/CONTROL/START-RUN",
            "/v1/fleet/",
            "/v1/fleet",
            "/",
            "",
        ),
        *(
            PULL + "/",
            "/" + PULL,
            PULL.upper(),
            PULL + "\x00",
            PULL + "?",
            PULL + "#",
            PULL + ";",
            " " + PULL,
            PULL + "é",
        ),
        *("/v1/fleet/register-node", "/v1/fleet/unregister-node", "v1/fleet/pull-messages", "https://hub" + PULL),
    ],
)
def test_no_other_writing_of_a_path_is_a_path_of_sites(path):
    assert refused(path, signed(SITE))


@pytest.mark.parametrize(
    "scope",
    [
        *({"method": method} for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post", "CONNECT")),
        {"raw_path": b"/v1/fleet/pull%2Dmessages"},
        {"raw_path": b"/v1/control/..%2ffleet/pull-messages"},
        {"raw_path": None},
        {"root_path": "/v1"},
        {"query_string": b"a=b"},
        {"type": "websocket"},
        {"type": "other"},
    ],
)
def test_a_site_posts_and_writes_its_path_plainly(scope):
    assert request(PULL, signed(SITE))[0] == 200
    assert refused(PULL, signed(SITE), **scope)


def test_a_websocket_is_refused_even_with_the_secret():
    assert refused(START, OWN, type="websocket")


@pytest.mark.parametrize("seconds", [-60, 400])
def test_a_signature_of_another_time_is_refused(seconds):
    assert request(PULL, signed(SITE, 200))[0] == 200
    assert refused(PULL, signed(SITE, seconds))


@pytest.mark.parametrize(
    "change",
    [
        {"flwr-timestamp": "2026-01-01T00:00:00"},
        {"flwr-timestamp": "now"},
        {"flwr-timestamp": "é"},
        {"flwr-signature": "AAAA"},
        {"flwr-signature": "é"},
        {"flwr-public-key": ""},
        {"flwr-public-key": signed(STRANGER)["flwr-public-key"]},
    ],
)
def test_a_broken_signature_is_refused(change):
    assert refused(PULL, signed(SITE) | change)


def test_a_header_that_is_given_twice_is_refused():
    headers = [*signed(SITE).items(), ("flwr-public-key", signed(STRANGER)["flwr-public-key"])]
    assert refused(PULL, headers)


def test_flower_does_not_read_the_host_that_a_site_writes():
    status, (scope,) = request(PULL, signed(SITE) | {"host": "x/v1/runtime/acquire-task?"})
    assert status == 200
    assert b"host" not in dict(scope["headers"])


def test_start_and_end_of_the_server_are_passed_on():
    assert len(request(type="lifespan")[1]) == 1


@pytest.mark.parametrize("known", [True, False])
def test_a_site_that_is_refused_is_reported_with_its_address_and_its_clock(known):
    found = []
    who = SITE if known else STRANGER
    for seconds in (0, -60, 400):
        request(PULL, signed(who, seconds), refused=lambda *what: found.append(what), client=("10.1.2.3", 5))
    assert [(key, address) for key, address, _ in found] == [(public_key_to_bytes(who.public_key()), "10.1.2.3")] * (
        2 if known else 3
    )
    assert [ahead for _, _, ahead in found][-2:] == [pytest.approx(60, abs=5), pytest.approx(-400, abs=5)]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed(STRANGER) | {"flwr-signature": "AAAA"},
        signed(STRANGER) | {"flwr-public-key": signed(SITE)["flwr-public-key"]},
        signed(SITE) | {"flwr-public-key": base64.b64encode(RSA).decode()},
        signed(SITE) | {"flwr-public-key": base64.b64encode(b"no key").decode()},
    ],
)
def test_only_one_who_holds_the_key_is_reported(headers):
    assert request(PULL, headers, refused=pytest.fail)[0] == 404


KNOWN, UNKNOWN = (public_key_to_bytes(generate_key_pairs()[1]) for _ in range(2))

PUBLIC = (
    "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBIslxrUqNbERiTxbYy7PWNVwylXMKfZTzTR7pbsitGTk3ScQ"
    "jL2Djx62/lKvI4dHR2lKi/CjGpM5iY3tcHcAOwoNIQRLemP1QZ/fteOH5ZBHEx6f3pZN9kOGiHqNEO54wQ=="
)


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.WARNING, "brainfed")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_site_is_named_by_its_address_and_key_or_by_its_name_and_clock(lines):
    refused = Refusals({KNOWN: "oslo"})
    refused(UNKNOWN, "10.1.2.3", 0.0)
    refused(KNOWN, "10.1.2.4", -400.0)
    unknown, late = lines()
    assert unknown.startswith("a site at 10.1.2.3 is refused: expected a key of the study's sites, found SHA256:")
    assert late == (
        "site oslo is refused: expected the coordinator's time, found a clock that is 400 s behind; set both by NTP"
    )


def test_one_key_is_reported_now_and_then_and_a_flood_of_keys_not_at_all(lines):
    now = [0.0]
    refused = Refusals({KNOWN: "oslo"}, lambda: now[0])
    for now[0] in (0.0, 1.0, AGAIN_S - 1, AGAIN_S + 1):
        refused(KNOWN, "10.1.2.4", 400.0)
    assert len(lines()) == 2
    for _ in range(2 * MOST):
        refused(public_key_to_bytes(generate_key_pairs()[1]), "10.1.2.3", 0.0)
    assert len(lines()) == 2 + MOST


def test_a_flood_of_keys_does_not_hide_a_site_of_the_study(lines):
    refused = Refusals({KNOWN: "oslo"})
    for _ in range(2 * MOST):
        refused(public_key_to_bytes(generate_key_pairs()[1]), "10.1.2.3", 0.0)
    refused(KNOWN, "10.1.2.4", 400.0)
    assert lines()[-1].startswith("site oslo is refused")


def test_a_fingerprint_is_that_of_ssh_keygen():
    key = load_ssh_public_key(f"ecdsa-sha2-nistp384 {PUBLIC}".encode())
    assert fingerprint(key) == "SHA256:PP8kpmbHF3mLKOrK/6CluVgKwwU7AGqagA50vHaFqJk"
