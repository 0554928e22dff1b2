"""From the leaves of a tree to those that the rest of Playhead knows: keys, names, options."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.blend.entry import CONCATENATED
from playhead.blend.leaf import Leaf, LeafOptions
from playhead.blend.transforms import TRANSFORMS
from playhead.blend.types import declared
from playhead.blend.weights import whole_weight
from playhead.config.faults import collected
from playhead.errors import ConfigError
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from playhead.blend.leaf import Kind
    from playhead.blend.mixture import Twig
    from playhead.config import Options, Spot
    from playhead.config.faults import Faults

__all__ = ["NAMING_LABELS", "check_joined", "is_stream", "leaves_of"]

_LONGEST_KEY = 24
NAMING_LABELS = ("corpus", "language", "dataset", "subset", "split")
"""Labels that a leaf without a name is called by."""


def leaves_of(
    twigs: Sequence[tuple[Twig, Fraction]], options: Options, faults: Faults | None = None
) -> list[tuple[Leaf, Spot]]:
    """Make the leaves of a tree, each with its key, name, share and options; and its entry.

    Parameters
    ----------
    twigs
        The leaves of the tree with their shares, in declared order.
    options
        The options of the section.
    faults
        Gets what is refused of leaves, which are left out then; None raises the first.

    Raises
    ------
    ConfigError
        If two have one name, or options contradict each other.
    """
    keys = _keys([twig for twig, _ in twigs], faults)
    names = [_shown(twig) for twig, _ in twigs]
    count = Counter(names)
    leaves: list[tuple[Leaf, Spot]] = []
    for (twig, share), key, name in zip(twigs, keys, names, strict=True):
        with collected(faults):
            leaf = Leaf(
                key=key,
                name=name if count[name] == 1 else _further(name, twig),
                type=twig.type,
                kind=_kind(twig),
                weight=whole_weight(share),
                paths=twig.source.paths,
                options=_leaf_options(twig, options),
                own=twig.own,
                extra_fields=twig.extra_fields,
                concatenation=twig.branch.concatenation,
                transforms=twig.branch.transforms,
                **_tags(twig),
                labels=twig.branch.labels,
            )
            leaves.append((leaf, twig.where))
    return leaves


def _tags(twig: Twig) -> dict[str, Mapping[str, Any]]:
    """The tags of a leaf; those of groups around it make no turns of conversations, as in NeMo."""
    own, outer = twig.branch.tags, twig.branch.outer_tags
    if _kind(twig) == "cut":
        return {"tags": {**outer, **own}}
    further = {name: value for name, value in outer.items() if name not in own}
    return {"tags": own, "outer_tags": further}


def _keys(twigs: Sequence[Twig], faults: Faults | None) -> list[str]:
    seen: Counter[str] = Counter()
    owners: dict[str, Twig] = {}
    keys: list[str] = []
    for twig in twigs:
        if twig.name is None:
            identity = _identity(twig)
            seen[identity] += 1
            key = identity if seen[identity] == 1 else f"{identity}-{seen[identity]}"
        else:
            key = _short(twig.name)
        owner = owners.setdefault(key, twig)
        if owner is not twig:
            with collected(faults):
                raise ConfigError(
                    f"the name {twig.name or owner.name!r} is taken by {owner.where}",
                    where=str(twig.where),
                    fix="Give each entry a name of its own: progress is kept under it",
                )
        keys.append(key)
    return keys


def _identity(twig: Twig) -> str:
    """What its data are, and what is made of them: the same samples wherever they are declared."""
    transforms = twig.branch.transforms
    if not transforms:
        return twig.source.identity
    text = "/".join((twig.source.identity, *(transform.name for transform in transforms)))
    return blake2b(text.encode(), digest_size=len(twig.source.identity) // 2).hexdigest()


def _kind(twig: Twig) -> Kind:
    """What its samples are: what is no stretch of audio passes transforms as it is."""
    of_type = declared(twig.type)
    kind = "cut" if of_type is None else of_type.kind
    for transform in twig.branch.transforms:
        kind = TRANSFORMS[transform.name].kind if kind == "cut" else kind
    return kind


def check_joined(twig: Twig) -> None:
    """Refuse to join what is no stretch of audio."""
    if twig.branch.concatenation is not None and _kind(twig) != "cut":
        made = "/".join((twig.type, *(transform.name for transform in twig.branch.transforms)))
        raise ConfigError(
            f"`{CONCATENATED}` joins audio, and rows of `{made}` are no stretches of it",
            where=str(twig.where),
            fix=f"Take the entry out of `{CONCATENATED}`",
        )


def _short(name: str) -> str:
    if len(name.encode()) <= _LONGEST_KEY:
        return name
    return blake2b(name.encode(), digest_size=8).hexdigest()


def _shown(twig: Twig) -> str:
    labels = twig.branch.labels
    called = "/".join(labels[key] for key in NAMING_LABELS if key in labels)
    return "/".join((*twig.branch.names, twig.name or called or twig.source.first))


def _further(name: str, twig: Twig) -> str:
    made = (transform.name for transform in twig.branch.transforms)
    return " ".join((f"{name} ({twig.source.first})", *made))


def _leaf_options(twig: Twig, section: Options) -> LeafOptions:
    options = twig.branch.options
    pack = options["index_pack"]
    if pack is not None and not options["indexed"]:
        raise ConfigError(
            "`index_pack` is given and `indexed` is not true",
            where=str(twig.where),
            fix="Add `indexed: true`",
        )
    return LeafOptions(
        text_field=options["text_field"],
        lang_field=options["lang_field"],
        indexed=options["indexed"],
        indexes_root=options["indexes_root"],
        index_pack=pack and _pack_path(pack, options["index_pack_root"]),
        input_sampling_rate=options["input_sampling_rate"],
        channel_selector=options["channel_selector"],
        audio_locator_tag=options["audio_locator_tag"],
        token_equivalent_duration=options["token_equivalent_duration"],
        # Files that are read row by row have no shards to take slices of.
        slice_length=options["slice_length"] if is_stream(twig) else None,
        cache_bytes=section.cache_bytes,
    )


def _pack_path(pack: str, root: str | None) -> str:
    """Where a declared pack lies: relative to its root, else to the working directory."""
    if scheme(pack):
        return pack
    if root is not None and scheme(root):
        return f"{root.rstrip('/')}/{pack.lstrip('/')}"
    return str(Path(root or ".").expanduser().absolute() / Path(pack).expanduser())


def is_stream(twig: Twig) -> bool:
    """Whether a source repeats even where it stands alone, as those that lie in tars do."""
    kind = declared(twig.type)
    return "tar" in twig.source.paths or (kind is not None and kind.is_stream)
