"""Masks: integers modulo 2^64 that look random to all who lack their seed.

They take the place of Flower's own (`pseudo_rand_gen`, 1.41), which fold a seed of 32 bytes into 32 bits for a Mersenne
Twister. The seed of a pair's mask is base64 text, which leaves 28: in a sum of two sites, 2^28 tries on an upload find
its mask.
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray


def mask(seed: bytes, count: int) -> NDArray[np.uint64]:
    """The key stream of AES-256 in counter mode, (count,), under a key that is derived from all of the seed.

    Args:
        seed: of one sum alone; the same seed gives the same mask.
        count: numbers wanted.
    """
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"brainfed secure sum").derive(seed)
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def pair_sign(code: int, other: int) -> np.uint64:
    """1 for one site of a pair, -1 modulo 2^64 for the other: their masks cancel in the sum."""
    return np.uint64(1) if code > other else np.uint64(2**64 - 1)
