"""Files that people send each other, and put into the wrong place."""

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from brainfed.deployment.flower.certificates import (
    make_certificate,
    make_key_pair,
    public_pem,
    require_certificate,
    require_public_keys,
    site_key,
)
from brainfed.runtime.errors import UserError


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
