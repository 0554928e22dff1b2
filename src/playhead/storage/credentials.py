"""Who one is to an object store: what the environment or the machine says, or nobody."""

from __future__ import annotations

import configparser
import os
import re
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from playhead.errors import ConfigError

__all__ = ["azure_options", "google_options", "s3_endpoint", "s3_options"]

# Where a machine of any of the clouds asks who it is; elsewhere nothing answers.
_MACHINE: Final = "http://169.254.169.254"
_MACHINE_SECONDS: Final = 1.0
_S3_ROLES: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_GOOGLE_NAMES: Final = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS")
_AZURE_ENDINGS: Final = ("_KEY", "_SAS_TOKEN", "_CLIENT_ID", "_TOKEN", "_TOKEN_FILE", "_AZURE_CLI")


def s3_options() -> dict[str, Any]:
    """Return how S3 is reached; without credentials anywhere, requests are not signed.

    Credentials are looked for in the variables ``AWS_*``, in the files of the AWS tools, and at the
    machine if it is one of Amazon's and no other endpoint is named.

    Raises
    ------
    ConfigError
        If ``AWS_PROFILE`` is in no file of the AWS tools, or the endpoint is no address.
    """
    given = os.environ
    profile = {} if given.get("AWS_ACCESS_KEY_ID") else _profile()
    endpoint = _endpoint(profile)
    if endpoint and not re.match(r"https?://[^/\s]", endpoint):
        raise ConfigError(
            f"the endpoint of S3 is {endpoint!r}, which is no http(s)://host:port",
            where="AWS_ENDPOINT_URL, or endpoint_url of the profile",
            fix="Write it with http:// or https://",
        )
    region = given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION") or profile.get("region")
    options: dict[str, Any] = {"region": region or "us-east-1"}
    # Whoever writes http:// into an endpoint wants it.
    options["allow_http"] = endpoint.startswith("http://") or _is_true("AWS_ALLOW_HTTP")
    if endpoint:
        options["endpoint"] = endpoint
    if profile.get("aws_access_key_id"):
        options["access_key_id"] = profile["aws_access_key_id"]
        options["secret_access_key"] = profile.get("aws_secret_access_key", "")
        if profile.get("aws_session_token"):
            options["session_token"] = profile["aws_session_token"]
    elif not (given.get("AWS_ACCESS_KEY_ID") or any(given.get(name) for name in _S3_ROLES)):
        options["skip_signature"] = bool(endpoint) or not _is_amazon()
    return options


def s3_endpoint() -> str:
    """The address of the server that is asked for S3; empty for Amazon's.

    Raises
    ------
    ConfigError
        If ``AWS_PROFILE`` is in no file of the AWS tools.
    """
    return _endpoint({} if os.environ.get("AWS_ACCESS_KEY_ID") else _profile())


def google_options() -> dict[str, Any]:
    """Return how Google's storage is reached; without credentials anywhere, as anybody."""
    folder = Path(os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud")
    known = (
        _is_given(lambda name: name.startswith(_GOOGLE_NAMES))
        or (folder / "application_default_credentials.json").is_file()
        or _answers("/computeMetadata/v1/", "Metadata-Flavor", "Google")
    )
    return {"allow_http": _is_true("GOOGLE_ALLOW_HTTP"), "skip_signature": not known}


def azure_options() -> dict[str, Any]:
    """Return how Azure's storage is reached; without credentials anywhere, as anybody."""
    known = _is_given(
        lambda name: name.startswith("AZURE_") and name.endswith(_AZURE_ENDINGS)
    ) or _answers("/metadata/instance?api-version=2021-02-01", "Metadata", "true")
    endpoint = os.environ.get("AZURE_STORAGE_ENDPOINT") or os.environ.get("AZURE_ENDPOINT") or ""
    return {
        "allow_http": endpoint.startswith("http://") or _is_true("AZURE_ALLOW_HTTP"),
        "skip_signature": not known,
    }


def _endpoint(profile: dict[str, str]) -> str:
    given = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return (given or profile.get("endpoint_url") or "").rstrip("/")


def _profile() -> dict[str, str]:
    """What the files of the AWS tools say of the profile that is chosen."""
    chosen = os.environ.get("AWS_PROFILE")
    name = chosen or "default"
    home = Path.home() / ".aws"
    config = os.environ.get("AWS_CONFIG_FILE") or str(home / "config")
    credentials = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or str(home / "credentials")
    found: dict[str, str] = {}
    sections = 0
    for path, section in (
        (config, name if name == "default" else f"profile {name}"),
        (credentials, name),
    ):
        # Values may hold percent signs, and one key may stand in several sections.
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(path)
        except (configparser.Error, UnicodeError) as error:
            raise ConfigError(
                f"the file cannot be read: {type(error).__name__}", where=path, fix="Correct it"
            ) from error
        if parser.has_section(section):
            sections += 1
            found |= dict(parser.items(section))
    if chosen and not sections:
        raise ConfigError(
            f"AWS_PROFILE is {chosen!r}, and there is no such profile",
            where=f"{config}, {credentials}",
            fix="Correct it, or give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    return found


def _is_given(wanted: Any) -> bool:
    return any(value and wanted(name) for name, value in os.environ.items())


def _is_true(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes", "on")


def _is_amazon() -> bool:
    """Whether the machine is one of Amazon's that has a role."""
    return not _is_true("AWS_EC2_METADATA_DISABLED") and _answers(
        "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60", method="PUT"
    )


@lru_cache
def _answers(path: str, header: str, value: str, method: str = "GET") -> bool:
    """Whether the machine knows who it is; asked once, as it takes time to find out that not."""
    request = urllib.request.Request(  # noqa: S310 - the address is ours
        _MACHINE + path, headers={header: value}, method=method
    )
    # What goes through a proxy would be asked of another machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(request, timeout=_MACHINE_SECONDS).close()
    except OSError:
        return False
    return True
