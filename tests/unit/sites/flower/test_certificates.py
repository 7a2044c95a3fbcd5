"""Certificates and keys, those that a coordinator brings included."""

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from brainfed.runtime import UserError
from brainfed.sites.flower import (
    make_certificate,
    make_key_pair,
    make_or_check,
    require_certificate,
    require_public_keys,
    site_key,
)
from brainfed.sites.flower._certificates import private_key, public_pem


@pytest.fixture
def keys(tmp_path):
    for site in ("north", "south"):
        make_key_pair(tmp_path / site, tmp_path / f"{site}.pub")
    return {site: tmp_path / f"{site}.pub" for site in ("north", "south")}


def test_keys_of_their_own_are_accepted(keys, tmp_path):
    require_public_keys(keys)
    make_certificate(tmp_path / "certificate.pem", tmp_path / "key.pem", ["localhost"])
    require_certificate(tmp_path / "certificate.pem")
    assert site_key(tmp_path / "north").public_key() != site_key(tmp_path / "south").public_key()


def test_a_private_key_in_the_place_of_a_public_one_has_to_be_made_anew(keys, tmp_path):
    keys["north"].write_bytes((tmp_path / "north").read_bytes())
    with pytest.raises(
        UserError, match=r"north\.pub: expected the public key of site 'north', found a private key"
    ) as e:
        require_public_keys(keys)
    assert "let the site remove `north` and `north.pub`" in str(e.value)
    assert "\n" not in str(e.value)


def test_two_sites_of_one_key_are_both_named(keys):
    keys["south"].write_bytes(keys["north"].read_bytes() + b"\n")
    with pytest.raises(
        UserError, match=r"south\.pub: expected a key of site 'south' alone, found that of site 'north'"
    ):
        require_public_keys(keys)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"ecdsa-sha2-nistp384 AAAA", b"\xff\x00", b"ssh-unknown AAAA north"]
)
def test_a_file_that_is_no_key_is_refused(keys, content):
    keys["north"].write_bytes(content)
    with pytest.raises(UserError, match=r"north\.pub: expected the public key of site 'north', .* ask the site for"):
        require_public_keys(keys)


def test_a_key_of_another_kind_is_refused(keys):
    other = rsa.generate_private_key(65537, 2048).public_key()
    keys["north"].write_bytes(other.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    with pytest.raises(UserError, match="expected a key that begins with `ecdsa-sha2`, found another kind"):
        public_pem(keys["north"])


def test_a_certificate_is_none_if_it_is_a_key_or_something_else(keys, tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "certificate-key.pem"
    make_certificate(certificate, key, ["localhost"])
    with pytest.raises(UserError, match=r"found a private key, .* send the new `certificate\.pem` to every site"):
        require_certificate(key)
    for content in (keys["north"].read_bytes(), b"", certificate.read_bytes()[:300]):
        certificate.write_bytes(content)
        with pytest.raises(UserError, match=r"expected the coordinator's certificate, found none; ask the coordinator"):
            require_certificate(certificate)


def test_a_sites_own_key_that_is_broken_is_refused(tmp_path):
    (tmp_path / "north").write_bytes(b"hello")
    with pytest.raises(UserError, match=r"expected this site's private key, found none; .* send the new `north\.pub`"):
        site_key(tmp_path / "north")


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
