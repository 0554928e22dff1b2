"""A YAML file as plain containers, with its `${…}` resolved only where somebody asks.

A whole training config holds interpolations that nobody can resolve outside the training job;
finding data needs a handful of its values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.paths import resolve_reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omegaconf import DictConfig

__all__ = ["YamlTree", "load_tree"]

_LIST = "__list__"


class YamlTree:
    """The content of one YAML file.

    Parameters
    ----------
    path
        The file, for messages and for references relative to it.
    content
        What the file holds.
    data_blend_dir
        What `${data_blend_dir}` stands for, or None.
    """

    def __init__(self, path: str, content: Any, data_blend_dir: str | None) -> None:
        self.path = path
        self.content = content
        self.data_blend_dir = data_blend_dir
        self._config: DictConfig | None = None

    def resolve(self, value: Any, keys: Sequence[str | int]) -> Any:
        """Resolve a value's interpolations, if it has any.

        Parameters
        ----------
        value
            What stands at `keys`.
        keys
            The way to the value from the top.

        Returns
        -------
        Any
            The value with everything below it resolved, as plain containers.

        Raises
        ------
        ConfigError
            An interpolation cannot be resolved.
        """
        if not _has_interpolation(value):
            return value
        from omegaconf import OmegaConf  # noqa: PLC0415  (slow, and most configs do not need it)
        from omegaconf.errors import OmegaConfBaseException  # noqa: PLC0415

        if self._config is None:
            self._config = self._make_config()
        way = [_LIST, *keys] if isinstance(self.content, list) else list(keys)
        try:
            node: Any = self._config
            for key in way:
                node = node[key]
            return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        except OmegaConfBaseException as error:
            reason = str(error).partition("\n")[0]
            fix = "Give it by `--data-blend-dir`" if "data_blend_dir" in reason else None
            raise ConfigError(
                f"`{'.'.join(map(str, keys))}` cannot be resolved: {reason}",
                where=self.path,
                fix=fix,
            ) from None

    def refer(self, reference: str) -> YamlTree:
        """Load a YAML file that this one names, relative to itself, then to the working directory.

        Parameters
        ----------
        reference
            The path as this file gives it.

        Raises
        ------
        SourceNotFoundError
            The file is in neither place.
        ConfigError
            It is not valid YAML.
        """
        path = resolve_reference(reference, Path(self.path).parent)
        return load_tree(path, data_blend_dir=self.data_blend_dir, named_by=self.path)

    def _make_config(self) -> DictConfig:
        from omegaconf import OmegaConf  # noqa: PLC0415

        is_list = isinstance(self.content, list)
        top = {_LIST: self.content} if is_list else dict(self.content)
        if self.data_blend_dir is not None:
            top["data_blend_dir"] = self.data_blend_dir
        return OmegaConf.create(top)


def load_tree(path: str, *, data_blend_dir: str | None, named_by: str | None = None) -> YamlTree:
    """Load a YAML file.

    Parameters
    ----------
    path
        The file.
    data_blend_dir
        What `${data_blend_dir}` stands for in it and in the files that it names.
    named_by
        The file that names it, for messages.

    Raises
    ------
    SourceNotFoundError
        There is no such file.
    ConfigError
        It is not valid YAML, or neither a list nor a mapping.
    """
    import yaml  # noqa: PLC0415  (with it `playhead --help` would be slower)

    try:
        text = Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        where = path if named_by is None else f"{path}, named by {named_by}"
        raise SourceNotFoundError(
            "there is no such config", where=where, fix="Correct its path"
        ) from None
    except OSError as error:
        raise ConfigError(f"the config cannot be read: {error.strerror}", where=path) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = yaml.load(text, Loader=loader)  # noqa: S506  (both loaders are safe ones)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = path if mark is None else f"{path}:{mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(f"the config is not valid YAML: {problem}", where=where) from None
    if not isinstance(content, (list, dict)):
        raise ConfigError(
            "the config is neither a list nor a mapping",
            where=path,
            fix="A blend is a list of entries, or a mapping with `input_cfg`",
        )
    return YamlTree(path, content, data_blend_dir)


def _has_interpolation(value: Any) -> bool:
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, dict):
        return any(map(_has_interpolation, cast("dict[Any, Any]", value).values()))
    if isinstance(value, list):
        return any(map(_has_interpolation, cast("list[Any]", value)))
    return False
