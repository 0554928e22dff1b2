"""A report is written whole or not at all, and replaces nothing but a report."""

from __future__ import annotations

import errno

import pytest

from playhead.errors import ConfigError, StorageError
from playhead.report.page import writing
from playhead.report.page.writing import check_target, write_report
from support import report_figures

EMPTY = report_figures.empty()


def test_a_report_is_written_and_replaced(tmp_path):
    path = tmp_path / "report.html"
    write_report(report_figures.texts(), path)
    first = path.read_text(encoding="utf-8")
    write_report(EMPTY, str(path))
    assert path.read_text(encoding="utf-8") != first
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("content", [b"", b"<!doctype html><html></html>", b"a: 1\n", b"\xff\xfe"])
def test_what_is_no_report_is_not_replaced(tmp_path, content):
    path = tmp_path / "blend.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"no report, and would be replaced"):
        write_report(EMPTY, path)
    assert path.read_bytes() == content


def test_folders_devices_and_names_that_cannot_be_are_refused(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "lost").symlink_to(tmp_path / "gone")
    for path, said in {
        tmp_path / "here": "a folder",
        tmp_path / "none" / "report.html": "folder of the report does not exist",
        "/dev/null": "no report",
        "/dev/full": "no report",
        tmp_path / "lost": "no report",
        tmp_path / ("x" * 300): "cannot be written here",
        "report\x00.html": "cannot be written here",
    }.items():
        with pytest.raises(ConfigError, match=said):
            check_target(path)


def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(writing.os, "access", lambda *_: False)
    with pytest.raises(ConfigError, match="may not be written to"):
        check_target(tmp_path / "report.html")


def test_a_full_disk_leaves_the_report_that_was_there(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(EMPTY, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("playhead.storage.atomic.os.fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device \(.*report.html\)") as error:
        write_report(report_figures.texts(), path)
    assert error.value.exit_code == 1
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
