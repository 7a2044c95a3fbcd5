"""Who is who: the coordinator's TLS certificate and the key pair of each site."""

import base64
import hashlib
import ipaddress
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from cryptography.x509.oid import NameOID

from brainfed.runtime import UserError, part_of, remove_left_over

PRIVATE: Final = b"PRIVATE KEY"
"""In the first line of every private key."""


def make_certificate(certificate: Path, key: Path, hosts: Sequence[str], days: int = 825) -> None:
    """Write a self-signed certificate of the coordinator, which is its own authority, and its private key.

    The certificate goes to every site, which trusts it alone; the key stays at the coordinator, mode 0600.

    Args:
        certificate: where to write it, PEM.
        key: where to write its private key, PEM.
        hosts: names and addresses by which sites reach the coordinator. `localhost` and 127.0.0.1 are added, for the
            coordinator's own processes.
        days: of validity.

    Raises:
        UserError: no host is named.
    """
    if not hosts:
        raise UserError("expected the name or address by which the sites reach the coordinator, found none")
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(_alternatives(hosts)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .sign(private, hashes.SHA256())
    )
    write_private(key, private_pem(private))
    certificate.write_bytes(built.public_bytes(Encoding.PEM))


def make_key_pair(private: Path, public: Path) -> None:
    """Write a site's key pair (ECDSA, P-384, in OpenSSH's format): the private key stays at the site, mode 0600.

    Raises:
        UserError: there is a private key already; a new one would lock the site out of its study.
    """
    if private.exists():
        raise UserError(f"{private}: this site has a key already; remove it to make another, and register it anew")
    pair = ec.generate_private_key(ec.SECP384R1())
    write_private(private, pair.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    write_public(public, pair.public_key())


def write_public(path: Path, key: ec.EllipticCurvePublicKey) -> None:
    """Write a site's public key, in OpenSSH's format."""
    path.write_bytes(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n")


def public_pem(public: Path) -> bytes:
    """A public key in OpenSSH's format, as the PEM that Flower knows it by.

    Raises:
        UserError: the file has no such key, or a private one.
    """
    site = public.stem
    try:
        content = public.read_bytes()
        if PRIVATE in content:
            raise UserError(
                f"{public}: expected the public key of site {site!r}, found a private key, which has left its place "
                f"and is a secret no more; remove it here, let the site remove `{site}` and `{site}.pub` from its "
                f"`federation/keys` and run `brainfed join` again, and ask for the new `{site}.pub`."
            )
        key = load_ssh_public_key(content)
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise UserError(
            f"{public}: expected the public key of site {site!r}, one whole line that begins with `ecdsa-sha2`, "
            f"found none; ask the site for the file `{site}.pub` of its `federation/keys`."
        ) from error
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise UserError(
            f"{public}: expected a key that begins with `ecdsa-sha2`, found another kind; ask the site for the file "
            f"`{site}.pub`, which its `brainfed join` makes."
        )
    return to_pem(key)


def to_pem(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key, as Flower and the packets have it."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key, not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def from_pem(content: bytes) -> ec.EllipticCurvePublicKey:
    """The key of `to_pem`.

    Raises:
        ValueError: there is none, or one of another kind.
        UnsupportedAlgorithm: there is one of a kind that is not known.
    """
    key = load_pem_public_key(content)
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("expected a key of ECDSA, found another kind")
    return key


def require_public_keys(keys: Mapping[str, Path]) -> None:
    """Refuse public keys, site -> file, that cannot say who a site is.

    Raises:
        UserError: a file has no public key, or two sites have the same.
    """
    owners: dict[bytes, str] = {}
    for site, path in keys.items():
        other = owners.setdefault(public_pem(path), site)
        if other != site:
            raise UserError(
                f"{path}: expected a key of site {site!r} alone, found that of site {other!r} too ({keys[other]}); ask "
                "both sites for their own, one of the files is in the wrong place."
            )


def require_certificate(path: Path) -> None:
    """Refuse a file at a site that is not the coordinator's certificate.

    Raises:
        UserError: it has a private key, no certificate, or one of another kind.
    """
    content = path.read_bytes()
    if PRIVATE in content:
        raise UserError(
            f"{path}: expected the coordinator's certificate, found a private key, which has left its place and is a "
            "secret no more; remove the file here, and let the coordinator remove `certificate.pem` and "
            "`certificate-key.pem`, run `brainfed coordinate` again, and send the new `certificate.pem` to every site."
        )
    try:
        key = x509.load_pem_x509_certificate(content).public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UserError(
            f"{path}: expected the coordinator's certificate, found none; ask the coordinator for its "
            "`federation/certificate.pem`, and put it here."
        ) from error
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise UserError(
            f"{path}: expected the certificate that `brainfed coordinate` made, found one with another kind of key; "
            "ask the coordinator for its `federation/certificate.pem`, and put it here."
        )


def fingerprint(key: ec.EllipticCurvePublicKey) -> str:
    """A key's name among people, as `ssh-keygen -l -f oslo.pub` prints it."""
    line = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def site_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key of a site.

    Raises:
        UserError: the file has none.
    """
    try:
        key = load_ssh_private_key(path.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UserError(
            f"{path}: expected this site's private key, found none; restore the file, or remove it and "
            f"`{path.name}.pub`, run this again, and send the new `{path.name}.pub` to the coordinator."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UserError(
            f"{path}: expected the key that `brainfed join` made, found another kind; remove it and `{path.name}.pub`, "
            f"run this again, and send the new `{path.name}.pub` to the coordinator."
        )
    return key


def private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key of the coordinator's certificate.

    Raises:
        UserError: it is none of ECDSA.
    """
    key = load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UserError(f"{path}: expected an ECDSA key, found another kind")
    return key


def _alternatives(hosts: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys((*hosts, "localhost", "127.0.0.1")):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read; it is whole, or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_over(path)
    part = part_of(path)
    try:
        with open(part, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


# The coordinator's own certificate: made at the first start, and fit for its address and its key at all later ones.


def make_or_check(certificate: Path, key: Path, host: str) -> None:
    """Make the certificate and its key, or check those that are there, for the host that the sites reach.

    Raises:
        UserError: one of the files is missing or cannot be read, they are of two pairs, or the certificate is for
            another host or has ended.
    """
    if not certificate.exists() and not key.exists():
        make_certificate(certificate, key, [host])
        print(f"made {certificate}: send it to every site", file=sys.stderr)
        return
    anew = (
        f"remove `{certificate.name}` and `{key.name}`, run this again, and send the new `{certificate.name}` to every "
        "site"
    )
    for path, other in ((certificate, key), (key, certificate)):
        if not path.exists():
            raise UserError(f"{path}: expected it beside `{other.name}`, found no file; restore it, or {anew}.")
    try:
        shown = x509.load_pem_x509_certificate(certificate.read_bytes())
        own = private_key(key)
    except (ValueError, TypeError, UnsupportedAlgorithm, UserError) as error:
        raise UserError(
            f"{certificate} and `{key.name}`: expected a certificate and its key as this command makes them, found "
            f"others; {anew}."
        ) from error
    if shown.public_key() != own.public_key():
        raise UserError(f"{key}: expected the key of `{certificate.name}`, found that of another; {anew}.")
    if (end := shown.not_valid_after_utc) <= datetime.now(UTC):
        raise UserError(f"{certificate}: expected a valid certificate, found one that ended on {end:%d %B %Y}; {anew}.")
    names = list(_names(shown))
    if host.lower() not in map(str.lower, names):
        raise UserError(
            f"{certificate}: expected a certificate for {host}, the host of `study.address`, found one for "
            f"{', '.join(names) or 'no host'}; correct the address, or {anew}."
        )


def _names(certificate: x509.Certificate) -> Iterable[str]:
    """The names and addresses that a certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from names.get_values_for_type(x509.DNSName)
    yield from map(str, names.get_values_for_type(x509.IPAddress))
