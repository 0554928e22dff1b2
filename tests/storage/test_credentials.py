"""Who one is to a store, by the environment, the files of the AWS tools, and the machine."""

from __future__ import annotations

import os

import pytest

from playhead.errors import ConfigError
from playhead.storage import credentials
from playhead.storage.credentials import azure_options, google_options, s3_options


@pytest.fixture(autouse=True)
def asked(monkeypatch, tmp_path):
    """What a machine is asked; it answers what is put into the set beside."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLOUDSDK_CONFIG", raising=False)
    known: set[str] = set()

    def answers(path, *_, **__):
        return path in known

    monkeypatch.setattr(credentials, "_answers", answers)
    return known


def test_nobody_signs_nothing(asked):
    assert s3_options() == {"region": "us-east-1", "allow_http": False, "skip_signature": True}
    assert google_options()["skip_signature"]
    assert azure_options()["skip_signature"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AWS_ACCESS_KEY_ID", s3_options),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", s3_options),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", s3_options),
        ("GOOGLE_APPLICATION_CREDENTIALS", google_options),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", google_options),
        ("AZURE_STORAGE_ACCOUNT_KEY", azure_options),
        ("AZURE_STORAGE_SAS_TOKEN", azure_options),
        ("AZURE_CLIENT_ID", azure_options),
    ],
)
def test_what_the_environment_names_is_used(monkeypatch, name, options):
    monkeypatch.setenv(name, "x")
    assert not options().get("skip_signature")


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/latest/api/token", s3_options),
        ("/computeMetadata/v1/", google_options),
        ("/metadata/instance?api-version=2021-02-01", azure_options),
    ],
)
def test_a_machine_of_a_cloud_knows_who_it_is(asked, path, options):
    asked.add(path)
    assert options()["skip_signature"] is False


def test_a_machine_is_not_asked_for_another_endpoint(asked, monkeypatch):
    asked.add("/latest/api/token")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/")
    assert s3_options() == {
        "region": "us-east-1",
        "endpoint": "http://127.0.0.1:9000",
        "allow_http": True,
        "skip_signature": True,
    }


@pytest.mark.parametrize("endpoint", ["localhost:9000", "http://", "minio", "https:///bucket"])
def test_an_endpoint_that_is_no_address_is_named(monkeypatch, endpoint):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(ConfigError, match=r"no http\(s\)://host:port .AWS_ENDPOINT_URL"):
        s3_options()


def test_the_files_of_the_aws_tools_are_read(monkeypatch, tmp_path):
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "config").write_text("[default]\nregion=eu-west-1\n[profile b]\nregion=us-west-2\n")
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id=A\naws_secret_access_key=S%1\naws_session_token=T\n"
    )
    assert s3_options() == {
        "region": "eu-west-1",
        "allow_http": False,
        "access_key_id": "A",
        "secret_access_key": "S%1",
        "session_token": "T",
    }
    monkeypatch.setenv("AWS_PROFILE", "b")
    assert s3_options()["region"] == "us-west-2"
    monkeypatch.setenv("AWS_REGION", "sa-east-1")
    assert s3_options()["region"] == "sa-east-1"


def test_a_profile_that_is_nowhere_is_named(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "team")
    with pytest.raises(ConfigError, match=r"'team'.*no such profile"):
        s3_options()


def test_a_file_of_the_aws_tools_that_is_broken_is_named(tmp_path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("no section\n")
    with pytest.raises(ConfigError, match=r"credentials"):
        s3_options()
