"""The official SDK takes the emulated AIStore for a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import ais_sdk_checks
from support.ais_emulator import AisEmulator
from support.certificate import make_certificate

aistore = pytest.importorskip("aistore")

TESTS = Path(ais_sdk_checks.__file__).parents[1]
EXPECTED = {
    "size": 11,
    "whole": "hello world",
    "range": "llo",
    "direct": "hello world",
    "member": 600,
    "names": ["o 1/ü.bin", "t.tar"],
    "batch True": [700, 0, 5, 3, 700],
    "batch False": [700, 0, 5, 3, 700],
}


def check(told):
    assert {key: told[key] for key in EXPECTED} == EXPECTED
    # A HEAD has no text to tell the kind from.
    assert told["raised"] == ["ErrObjNotFound", "AISError", "ErrBckAlreadyExists"]
    assert told["counts"]["batch"] == 2
    assert told["counts"]["batch entries"] == 10
    assert told["counts"]["proxy get"] == told["counts"]["get"] - 1


def test_the_installed_sdk_sees_what_a_real_server_shows():
    check(ais_sdk_checks.seen())


@pytest.fixture
def oldest_sdk():
    """A Python that has the oldest version of the SDK that is supported."""
    python = os.environ.get("PLAYHEAD_AIS126_PYTHON")
    if not (python and Path(python).is_file()):
        pytest.skip("PLAYHEAD_AIS126_PYTHON does not name a Python with aistore 1.26.0")
    return python


def test_the_oldest_supported_sdk_sees_the_same(oldest_sdk):
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [oldest_sdk, "-m", "support.ais_sdk_checks"]
    done = subprocess.run(command, env=env, capture_output=True, timeout=200, check=True)
    check(json.loads(done.stdout))


@pytest.mark.slow
def test_all_tests_of_the_store_pass_with_the_oldest_supported_sdk(oldest_sdk, tmp_path):
    ask = "import aistore; print(aistore.__path__[0])"
    found = subprocess.run([oldest_sdk, "-c", ask], capture_output=True, text=True, check=True)
    (tmp_path / "aistore").symlink_to(found.stdout.strip())
    before = os.environ.get("PYTHONPATH", "")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), before]))}
    files = [TESTS / "storage" / f"{name}.py" for name in ("test_aistore", "test_aistore_batch")]
    version = "import aistore.version as v; assert v.__version__ == '1.26.0', v.__version__"
    subprocess.run([sys.executable, "-c", version], env=env, check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, files)]
    done = subprocess.run(
        command, env=env, cwd=TESTS.parent, capture_output=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout.decode()[-4000:]


def test_tls_and_a_token_are_asked_for(tmp_path, monkeypatch):
    # requests would take these for both, whatever the SDK is told.
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    folder = make_certificate(tmp_path)
    with AisEmulator(token="let me in", tls=folder) as ais:
        client = aistore.Client(ais.endpoint, ca_cert=str(folder / "cert.pem"), token=ais.token)
        bucket = client.bucket("bck").create()
        bucket.object("a").get_writer().put_content(b"over tls")
        assert bucket.object("a").get_reader().read_all() == b"over tls"
        stranger = aistore.Client(ais.endpoint, ca_cert=str(folder / "cert.pem"))
        with pytest.raises(aistore.sdk.errors.AISError, match="token required"):
            stranger.bucket("bck").object("a").get_reader().read_all()
