"""Bytes: ranges of files, files that appear whole or not at all, and headers of tars."""
