"""A YAML file as plain containers, with its `${…}` resolved only where somebody asks.

A whole training config holds interpolations that nobody can resolve outside the training job;
finding data needs a handful of its values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.blend.interpolation import Interpolation
from playhead.blend.yaml_loader import parse_yaml
from playhead.errors import ConfigError, SourceNotFoundError
from playhead.paths import resolve_reference, scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["YamlTree", "load_tree"]


class YamlTree:
    """The content of one YAML file.

    Parameters
    ----------
    path
        The file, or what stands for it in messages.
    content
        What the file holds.
    data_blend_dir
        What `${data_blend_dir}` stands for; None for the content's own key of that name.
    folder
        What paths in it are relative to beside the working directory; None where it is no file.
    """

    def __init__(
        self, path: str, content: Any, data_blend_dir: str | None, folder: Path | None = None
    ) -> None:
        self.path = path
        self.content = content
        self.folder = folder
        if data_blend_dir is None and isinstance(content, dict):
            data_blend_dir = content.get("data_blend_dir")
        self.data_blend_dir = data_blend_dir
        self._interpolation = Interpolation(content, data_blend_dir, path)

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
        return self._interpolation.resolve(value, keys)

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
        path = resolve_reference(reference, self.folder)
        return load_tree(path, data_blend_dir=self.data_blend_dir, named_by=self.path)


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
    if scheme(path):
        raise ConfigError("a config has to be a local file", where=path, fix="Download it first")
    try:
        text = Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        where = path if named_by is None else f"{path}, named by {named_by}"
        raise SourceNotFoundError(
            "there is no such config", where=where, fix="Correct its path"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"the config cannot be read: {error.strerror}",
            where=path,
            fix="Give a file that may be read",
        ) from None
    content = parse_yaml(text, path)
    if not isinstance(content, (list, dict)):
        raise ConfigError(
            "the config is neither a list nor a mapping",
            where=path,
            fix="A blend is a list of entries, or a mapping with `input_cfg`",
        )
    return YamlTree(path, content, data_blend_dir, Path(path).parent)
