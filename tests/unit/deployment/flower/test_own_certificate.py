"""The coordinator's own certificate at its first start, and at later ones."""

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from brainfed.deployment.flower.certificates import make_certificate, private_key
from brainfed.deployment.flower.own_certificate import make_or_check
from brainfed.runtime.errors import UserError

HOST = "hub.example.org"


@pytest.fixture
def pair(tmp_path):
    files = tmp_path / "certificate.pem", tmp_path / "certificate-key.pem"
    make_or_check(*files, HOST)
    return files


def test_it_is_made_once(tmp_path, capsys):
    pair = tmp_path / "certificate.pem", tmp_path / "certificate-key.pem"
    make_or_check(*pair, HOST)
    assert capsys.readouterr().err == f"made {pair[0]}: send it to every site\n"
    before = [file.read_bytes() for file in pair]
    make_or_check(*pair, HOST)
    make_or_check(*pair, "127.0.0.1")
    assert [file.read_bytes() for file in pair] == before and capsys.readouterr().err == ""


@pytest.mark.parametrize("lost", [0, 1])
def test_one_without_the_other_is_refused(pair, lost):
    pair[lost].unlink()
    with pytest.raises(UserError, match=rf"{pair[lost].name}: expected it beside `{pair[1 - lost].name}`, found no"):
        make_or_check(*pair, HOST)


def test_the_key_of_another_is_refused(pair, tmp_path):
    make_certificate(tmp_path / "other.pem", pair[1], [HOST])
    with pytest.raises(UserError, match=r"expected the key of `certificate\.pem`, found that of another; remove"):
        make_or_check(*pair, HOST)


@pytest.mark.parametrize("spoilt", [0, 1])
def test_a_file_that_cannot_be_read_is_refused(pair, spoilt):
    pair[spoilt].write_text("nothing")
    with pytest.raises(
        UserError, match="expected a certificate and its key as this command makes them, found others; remove"
    ):
        make_or_check(*pair, HOST)


def test_a_certificate_for_another_address_is_refused(pair):
    with pytest.raises(
        UserError, match=r"a certificate for lab\.example\.org, .* found one for hub\.example\.org, loc"
    ):
        make_or_check(*pair, "lab.example.org")


def test_capital_letters_of_a_host_make_no_difference(pair, capsys):
    before = [file.read_bytes() for file in pair]
    capsys.readouterr()
    make_or_check(*pair, "Hub.Example.org")
    assert [file.read_bytes() for file in pair] == before and capsys.readouterr().err == ""


def test_a_certificate_that_has_ended_is_refused(pair):
    make_certificate(*pair, [HOST], days=-1)
    with pytest.raises(UserError, match=r"expected a valid certificate, found one that ended on .*; remove"):
        make_or_check(*pair, HOST)


def test_a_certificate_that_names_no_host_is_refused(pair):
    """As other programs make them."""
    key = private_key(pair[1])
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    dated = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    plain = dated.sign(key, hashes.SHA256())
    pair[0].write_bytes(plain.public_bytes(Encoding.PEM))
    with pytest.raises(UserError, match=rf"expected a certificate for {HOST}, .* found one for no host; correct"):
        make_or_check(*pair, HOST)
