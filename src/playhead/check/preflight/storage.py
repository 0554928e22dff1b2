"""Rules on object stores and AIStore: what is installed, what is set, and what goes with what."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from playhead.check.preflight.files import without_secrets
from playhead.check.preflight.modes import is_true
from playhead.check.preflight.rule import Seen, rule
from playhead.paths import scheme
from playhead.storage.access import OBJECT_SCHEMES
from playhead.storage.get_batch import served_by_aistore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Named, Subject

__all__: list[str] = []

_BATCH, _SINGLE, _ENDPOINT = "USE_AIS_GET_BATCH", "USE_AIS_INDIVIDUAL_GETS", "AIS_ENDPOINT"
_MIRRORS = "LHOTSE_S3_LOCAL_MIRROR_ROOTS"
_OF_AIS: Final = (1, 26)
_OF_OBJECTS: Final = (0, 8)


def _of_aistore(subject: Subject) -> frozenset[str]:
    """The schemes that are read through AIStore."""
    return frozenset(name for name in subject.schemes if name and served_by_aistore(f"{name}://"))


def _first(subject: Subject, schemes: frozenset[str]) -> tuple[Named, str, str] | None:
    """The first leaf with a path of some schemes, with the path's role and the path."""
    for named in subject.leaves:
        for role, paths in named.leaf.paths.items():
            for path in paths:
                if scheme(path) in schemes:
                    return named, role, path
    return None


def _installed(package: str) -> tuple[int, ...] | None:
    try:
        found = version(package)
    except PackageNotFoundError:
        return None
    return tuple(int(part) for part in found.split(".")[:2] if part.isdigit())


@rule("storage-extra", "fail", "What reads a store comes with an extra of Playhead", 50)
def storage_extra(subject: Subject) -> Iterator[Seen]:
    """Schemes whose library is not installed, or is too old."""
    through = _of_aistore(subject)
    needed = {
        ("ais", "aistore", _OF_AIS): through,
        ("s3", "obstore", _OF_OBJECTS): (subject.schemes & OBJECT_SCHEMES) - through,
    }
    for (extra, package, least), schemes in needed.items():
        found = _installed(package)
        if not schemes or (found is not None and found >= least):
            continue
        where = _first(subject, schemes)
        asked = ".".join(map(str, least))
        have = "is not installed" if found is None else f"is {version(package)}, below {asked}"
        yield Seen(
            f"the blend names {', '.join(f'{name}://' for name in sorted(schemes))}, and {package}"
            f" {have}",
            None if where is None else str(where[0].place(where[1])),
            advice=f"Run `pip install 'playhead[{extra}]'`",
        )


@rule("storage-scheme", "fail", "Nothing reads a scheme that is not known", 7, 50)
def storage_scheme(subject: Subject) -> Iterator[Seen]:
    """Schemes of no store."""
    unknown = subject.schemes - OBJECT_SCHEMES - {"", "ais", "pipe"}
    for name in sorted(unknown):
        found = _first(subject, frozenset({name}))
        if found is not None:
            named, role, path = found
            yield Seen(
                f"nothing reads {name}://, as in {without_secrets(path)}",
                str(named.place(role)),
                advice=f"Use a path, or one of {', '.join(sorted([*OBJECT_SCHEMES, 'ais']))}",
            )


@rule("ais-endpoint", "fail", "AIStore is found by its endpoint alone", 50)
def ais_endpoint(subject: Subject) -> Iterator[Seen]:
    """`ais://` without an endpoint, or with one that cannot be one."""
    given = subject.environment.get(_ENDPOINT, "").strip()
    through = _of_aistore(subject)
    if not through:
        return
    where = _first(subject, through)
    place = None if where is None else str(where[0].place(where[1]))
    if not given:
        yield Seen(
            f"the blend names ais://, and {_ENDPOINT} is not set",
            place,
            advice=f"Set {_ENDPOINT}=http://HOST:PORT of the cluster's proxy, for all processes",
        )
        return
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        what = "which is no http:// or https:// address"
    elif parts.path.strip("/") or parts.query:
        what = "which has a path: the client takes that away"
    else:
        return
    yield Seen(
        f"{_ENDPOINT} is {without_secrets(given)}, {what}",
        "environment",
        advice="Write http://HOST:PORT and nothing behind it",
    )


@rule(
    "ais-endpoint-idle",
    "note",
    "The schemes of the paths decide where data are read from, nothing else",
    50,
)
def ais_endpoint_idle(subject: Subject) -> Iterator[Seen]:
    """An endpoint that nothing is read from."""
    if subject.environment.get(_ENDPOINT) and not _of_aistore(subject) and subject.leaves:
        yield Seen(
            f"{_ENDPOINT} is set, and no path of the blend is read through it", "environment"
        )


@rule("ais-switch", "warning", "A switch of another value than true is off")
def ais_switch(subject: Subject) -> Iterator[Seen]:
    """Switches that look as if they were on."""
    for name in (_BATCH, _SINGLE):
        value = subject.environment.get(name, "").strip()
        if value.lower() not in ("", "true", "false", "0", "no", "off"):
            yield Seen(
                f"{name} is {value!r}, which is not true: it is off",
                "environment",
                advice=f"Set {name}=true, or unset it",
            )


@rule(
    "ais-get-batch-off",
    "warning",
    "One request for a batch is many times as fast as one for each sample",
    51,
)
def ais_get_batch_off(subject: Subject) -> Iterator[Seen]:
    """Archives in AIStore that are read without batch requests."""
    if is_true(subject.environment, _BATCH):
        return
    for named in subject.leaves:
        tars = named.leaf.paths.get("tar", ())
        if any(scheme(path) == "ais" for path in tars):
            yield Seen(
                f"the archives of leaf {named.leaf.name} are in AIStore, and {_BATCH} is not true",
                str(named.place("tar")),
                advice=f"Set {_BATCH}=true for all processes",
            )
            return


@rule("ais-get-batch-idle", "note", "Local files are read in place, whatever is set", 51)
def ais_get_batch_idle(subject: Subject) -> Iterator[Seen]:
    """Batch requests without anything to request."""
    if is_true(subject.environment, _BATCH) and subject.leaves and not _of_aistore(subject):
        yield Seen(
            f"{_BATCH} is true, and nothing in the blend is read through AIStore",
            "environment",
            advice="Unset it",
        )


@rule("ais-unverified", "warning", "That offsets could be read says nothing of batch requests", 52)
def ais_unverified(subject: Subject) -> Iterator[Seen]:
    """Batch or single requests that nobody has tried."""
    if not is_true(subject.environment, _BATCH) or not _of_aistore(subject):
        return
    if "fetch" not in subject.facts:
        single = is_true(subject.environment, _SINGLE)
        yield Seen(
            f"samples come by {'single' if single else 'batch'} requests, which were not tried",
            "environment",
            advice=f"Run `playhead check {subject.command} --fetch 32`; where batches fail,"
            f" {_SINGLE}=true fetches object by object",
        )


@rule("ais-individual-idle", "note", "Single requests are another way to answer batch requests", 53)
def ais_individual_idle(subject: Subject) -> Iterator[Seen]:
    """Single requests without batch requests."""
    if is_true(subject.environment, _SINGLE) and not is_true(subject.environment, _BATCH):
        yield Seen(
            f"{_SINGLE} is true and {_BATCH} is not: it has no effect",
            "environment",
            advice=f"Set {_BATCH}=true too, or unset it",
        )


@rule("ais-certificates", "warning", "A certificate that does not fit is retried for minutes")
def ais_certificates(subject: Subject) -> Iterator[Seen]:
    """Settings of TLS that the client's library overrides."""
    given = subject.environment
    over = next(
        (name for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE") if given.get(name)), None
    )
    own = next(
        (
            name
            for name in ("AIS_CLIENT_CA", "AIS_SKIP_VERIFY_CRT", "AIS_SKIP_VERIFY")
            if given.get(name)
        ),
        None,
    )
    is_tls = given.get(_ENDPOINT, "").startswith("https:")
    if over and own and is_tls and _of_aistore(subject):
        yield Seen(
            f"{over} is set, and wins over {own}",
            "environment",
            advice=f"Unset {over} for training",
        )


@rule(
    "remote-manifests", "note", "Rows of remote manifests are one more request for each batch", 54
)
def remote_manifests(subject: Subject) -> Iterator[Seen]:
    """Manifests that are not on a file system."""
    for named in subject.leaves:
        role, paths = next(iter(named.leaf.paths.items()))
        if role != "tar" and any(scheme(path) not in ("", "pipe") for path in paths):
            yield Seen(
                f"the manifests of leaf {named.leaf.name} are remote",
                str(named.place()),
                advice="Keep them and the indexes on a file system (`playhead prefetch"
                " --manifests`), or embed the rows (`playhead pack --embed-rows`)",
            )


@rule("mirror-roots", "warning", "What is not in a mirror is read from the store, at its speed")
def mirror_roots(subject: Subject) -> Iterator[Seen]:
    """Local mirrors that are not there, or are of no use."""
    roots = [root for root in subject.environment.get(_MIRRORS, "").split(os.pathsep) if root]
    for root in roots:
        if not Path(root).is_dir():
            yield Seen(
                f"{_MIRRORS} names {root}, which is no folder",
                "environment",
                advice="Mount it, or take it out",
            )
    if roots and subject.leaves and "s3" not in subject.schemes:
        yield Seen(
            f"{_MIRRORS} is set, and no path of the blend is s3://", "environment", severity="note"
        )
