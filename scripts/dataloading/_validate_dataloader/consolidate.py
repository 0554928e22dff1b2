"""`playhead validate consolidate` under the name that NeMo's guides have."""

from playhead.cli.nemo_names import run_script

if __name__ == "__main__":
    run_script("dataloading/_validate_dataloader/consolidate.py")
