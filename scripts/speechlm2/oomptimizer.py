"""`playhead oomptimizer`, for speech language models; see docs/nemo-commands.md."""

from playhead.cli.nemo_names import run_script

if __name__ == "__main__":
    run_script("speechlm2/oomptimizer.py")
