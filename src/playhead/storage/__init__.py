"""Bytes: ranges of files, and files that appear whole or not at all."""
