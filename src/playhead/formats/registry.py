"""Which class reads which input type, and the decorator by which users add their own."""

from __future__ import annotations

from inspect import isclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, get_args

from playhead.blend.leaf import Kind
from playhead.blend.types import InputType, declare
from playhead.errors import ConfigError, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import Format, ScannedFormat

    AnyFormat: TypeAlias = Format | ScannedFormat

__all__ = ["format_names", "format_of", "get_format", "register", "register_type"]

_FORMATS: dict[str, Any] = {}

FormatType = TypeVar("FormatType", bound="AnyFormat")

_LINES: Final = ("sources", "columns", "example")
_TABLE_ALONE: Final = ("scan", "groups", "load")
_TABLE: Final = ("sources", *_TABLE_ALONE, "example")


def register(*names: str) -> Callable[[type[FormatType]], type[FormatType]]:
    """Make a class the reader of the input types `names`, which blends know already."""

    def add(cls: type[FormatType]) -> type[FormatType]:
        reader = cls()
        for name in names:
            _FORMATS[name] = reader
        return cls

    return add


def register_type(
    name: str,
    *,
    inputs: Mapping[str, str],
    optional: Iterable[str] = (),
    own: Mapping[str, Any] | None = None,
    is_stream: bool = False,
    kind: Kind = "cut",
) -> Callable[[type[FormatType]], type[FormatType]]:
    """Add an input type of one's own: a class decorator.

    The class is a `Format` (its rows are lines of a file: `sources`, `columns`, `example`) or a
    `TableFormat` (it reads its files itself: `sources`, `scan`, `groups`, `load`, `example`), and
    is made without arguments. From then on entries of a blend may name the type; shuffling,
    resuming, packs and filters work for it as for all others. Worker processes learn of the type by
    importing the module of the class, so the decorator belongs at the top of a module.

    Parameters
    ----------
    name
        What `type` says in an entry.
    inputs
        Role of the files, as `leaf.paths` has it, to the entry's key that holds their paths; the
        first role is the main one.
    optional
        Roles that an entry may leave out.
    own
        The options that only this type has, with their defaults; `leaf.own` holds them.
    is_stream
        Whether it repeats without end even where it stands alone, as tars do.
    kind
        What `Example.kind` of its samples is: `cut`, `text`, `pair`, `sft`, `messages` or
        `conversation`. Only of the last may rows have several audio turns (`RowColumns.audios`).

    Raises
    ------
    ConfigError
        If the class lacks a method, or another class has the name.

    Examples
    --------
    >>> from playhead.formats import RowColumns, SourcePair
    >>> @register_type("my_lists", inputs={"list": "list_path"}, own={"separator": "|"})
    ... class Lists:
    ...     def sources(self, leaf): ...
    ...     def columns(self, leaf, pair, block): ...
    ...     def example(self, leaf, place, row, parts): ...
    >>> "my_lists" in format_names()
    True
    """
    input_type = InputType(
        name=name,
        inputs=dict(inputs),
        optional=frozenset(optional),
        own=dict(own or {}),
        is_stream=is_stream,
        kind=kind,
    )
    if kind not in get_args(Kind):
        raise ConfigError(
            f"the input type `{name}` has samples of kind {kind!r}",
            fix=f"Use one of {', '.join(get_args(Kind))}",
        )

    def add(cls: type[FormatType]) -> type[FormatType]:
        _check_methods(name, cls)
        known = _FORMATS.get(name)
        if known is not None and not _is_same(type(known), cls):
            raise ConfigError(
                f"the input type `{name}` is read by {_named(type(known))} already",
                where=_named(cls),
                fix="Give yours another name",
            )
        _check_roles(input_type, cls)
        declare(input_type)
        return register(name)(cls)

    return add


def format_names() -> list[str]:
    """Names of the input types that can be read.

    Examples
    --------
    >>> "nemo_tarred" in format_names()
    True
    """
    return sorted(_FORMATS)


def get_format(type_name: str) -> Any:
    """Return the reader of an input type: a `Format` or a `TableFormat`.

    Raises
    ------
    NotSupportedError
        If there is none.
    """
    if type_name not in _FORMATS:
        raise NotSupportedError(
            f"the input type {type_name!r} cannot be read",
            fix=f"Use one of {', '.join(format_names())}",
        )
    return _FORMATS[type_name]


def format_of(leaf: Leaf) -> Any:
    """Return the reader of a leaf: that of its input type, with the leaf's transforms around it.

    Raises
    ------
    NotSupportedError
        If there is none.
    """
    reader = get_format(leaf.type)
    if not leaf.transforms:
        return reader
    # Blends without transforms, which is most of them, need not load what they do.
    from playhead.formats.transforms import transformed  # noqa: PLC0415

    return transformed(reader, leaf.transforms)


def _check_methods(name: str, cls: Any) -> None:
    if not isclass(cls):
        raise ConfigError(
            f"the input type `{name}` is registered for {cls!r}, which is no class",
            fix="Put the decorator above a class",
        )
    has = {method for method in (*_LINES, *_TABLE) if callable(getattr(cls, method, None))}
    is_table = "load" in has or ("columns" not in has and not has.isdisjoint(_TABLE_ALONE))
    kind, needed = ("TableFormat", _TABLE) if is_table else ("Format", _LINES)
    missing = [method for method in needed if method not in has]
    if missing:
        raise ConfigError(
            f"the class of the input type `{name}` has no method {' and no '.join(missing)}",
            where=_named(cls),
            fix=f"Write it as playhead.formats.{kind} says",
        )


def _check_roles(input_type: InputType, cls: type) -> None:
    strangers = sorted(input_type.optional - set(input_type.inputs))
    if strangers:
        raise ConfigError(
            f"`{input_type.name}` has no role {strangers[0]!r} that could be optional",
            where=_named(cls),
            fix=f"Name one of {', '.join(input_type.inputs)}",
        )


def _is_same(known: type, cls: type) -> bool:
    """Whether a class is another by import only, as in workers that import the main module anew."""
    mains = {"__main__", "__mp_main__"}
    same_module = known.__module__ == cls.__module__ or {known.__module__, cls.__module__} <= mains
    return same_module and known.__qualname__ == cls.__qualname__


def _named(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
