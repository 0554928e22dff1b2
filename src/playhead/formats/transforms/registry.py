"""Which class makes what of samples, by the name that an entry of a blend has for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from playhead.blend.transforms import TRANSFORMS
from playhead.errors import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.blend.leaf import Leaf, Transform
    from playhead.formats.example import Example

__all__ = ["RowTransform", "made", "register_transform", "transform_names"]


class RowTransform(Protocol):
    """What makes another sample of a cut; it is made with its own options and knows no files."""

    @property
    def shapes_rows(self) -> bool:
        """Whether it drops rows or changes their length: then the index has to see each of them."""
        ...

    def dropped(self, leaf: Leaf, example: Example) -> str | None:
        """Return why a sample is left out on purpose; None where it is not.

        Raises
        ------
        ManifestError
            If the sample cannot be judged.
        """
        ...

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Make the other sample; the one that is given stays as it is.

        Raises
        ------
        ManifestError
            If the sample lacks what the other one needs.
        """
        ...


_CLASSES: dict[str, Callable[[Mapping[str, Any]], RowTransform]] = {}

TransformClass = TypeVar("TransformClass", bound="Callable[[Mapping[str, Any]], RowTransform]")


def register_transform(name: str) -> Callable[[TransformClass], TransformClass]:
    """Make a class the one that does what the type `name` of an entry says: a class decorator."""

    def add(cls: TransformClass) -> TransformClass:
        _CLASSES[name] = cls
        return cls

    return add


def transform_names() -> list[str]:
    """Names of all transforms.

    Examples
    --------
    >>> "lhotse_as_conversation" in transform_names()
    True
    """
    return sorted(_CLASSES)


def made(transform: Transform) -> RowTransform:
    """Make a transform with the options that an entry gives it.

    Raises
    ------
    NotSupportedError
        If there is none of that name.
    ConfigError
        If an option is not what it should be.
    """
    if transform.name not in _CLASSES:
        raise NotSupportedError(
            f"there is no transform {transform.name!r}",
            fix=f"Use one of {', '.join(transform_names())}",
        )
    return _CLASSES[transform.name]({**TRANSFORMS[transform.name].own, **transform.options})
