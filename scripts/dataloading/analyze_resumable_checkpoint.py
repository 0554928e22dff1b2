"""`playhead inspect` under the name that NeMo's guides have; see docs/nemo-commands.md."""

from playhead.cli.nemo_names import run_script

if __name__ == "__main__":
    run_script("dataloading/analyze_resumable_checkpoint.py")
