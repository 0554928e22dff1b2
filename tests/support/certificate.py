"""A certificate for loopback that nobody trusts but who is told to."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def make_certificate(folder: Path) -> Path:
    """Make ``cert.pem`` and ``key.pem``; the test is skipped where there is no ``openssl``."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = [openssl, "req", "-x509", *curve, *names, *files]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return folder
