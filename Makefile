# Every target makes what it needs: a fresh machine with Python and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEER := .venv-peer
READY := $(VENV)/.ready
# Tests compare with Lhotse 2 where this environment exists; `make peer` makes it.
export PLAYHEAD_PEER_PYTHON ?= $(abspath $(PEER)/bin/python)
# And with NeMo's own dataloader where that exists; `make peer-nemo` makes it.
NEMO := .venv-nemo
export PLAYHEAD_NEMO_PYTHON ?= $(abspath $(NEMO)/bin/python)
# What NeMo's models and dataloaders import, directly or not, and what Playhead does; all that NeMo
# requires is far more.
NEMO_NEEDS := lhotse==2.0.0a7 torchdata soundfile omegaconf 'lightning<=2.4.0,>2.2.1' hydra-core \
	braceexpand sentencepiece orjson aistore smart-open wrapt text-unidecode fsspec \
	huggingface_hub einops pandas pyarrow scipy transformers onnx nv_one_logger_core \
	nv_one_logger_training_telemetry nv_one_logger_pytorch_lightning_integration tensorboard \
	torchmetrics librosa kaldialign sacrebleu whisper_normalizer datasets webdataset peft wandb \
	filelock msgspec numpy platformdirs rich typer urllib3

# The oldest client of AIStore that is supported; `make ais-oldest` makes its environment.
AIS_OLDEST := .venv-ais-oldest
export PLAYHEAD_AIS126_PYTHON ?= $(abspath $(AIS_OLDEST)/bin/python)
# Tests of clusters run in this environment; `make test-ray` makes it.
RAY := .venv-ray

.PHONY: demo test test-all test-ray lint format bench bench-gpu docs peer peer-nemo ais-oldest clean

demo: $(READY)
	$(BIN)/playhead demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 -m "not slow"

# All of it, and once more on Lhotse 2 what touches Lhotse. It does not make the environments of NeMo
# and of Ray, which cannot be had everywhere: the tests that need them are skipped, and so are those
# that look at pages in Chromium where there is none (apt-get install chromium).
test-all: $(READY) $(PEER)/.with-playhead $(AIS_OLDEST)/.ready
	PLAYHEAD_HYPOTHESIS=all $(BIN)/python -m pytest -n 2
	$(PEER)/bin/python -m pytest -n 2 tests/fetch tests/formats tests/datasets

test-ray: $(RAY)/.ready
	$(RAY)/bin/python -m pytest tests/index/test_ray.py tests/index/test_ray_pool.py

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) $(PEER)/.ready
	$(BIN)/python bench/run.py

# Fills the table of docs/oomptimizer.md; without a GPU it says so.
bench-gpu: $(READY)
	$(BIN)/python bench/gpu.py

docs: $(READY)
	$(BIN)/mkdocs build --strict

peer: $(PEER)/.ready

peer-nemo: $(NEMO)/.ready

ais-oldest: $(AIS_OLDEST)/.ready

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test,lint,docs]'
	touch $@

$(PEER)/.ready: constraints.txt
	test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install --quiet torch==$$(sed -n 's/^torch==//p' constraints.txt)
	$(PEER)/bin/python -m pip install --quiet lhotse==2.0.0a7 torchdata soundfile orjson
	touch $@

$(NEMO)/.ready: constraints.txt
	test -x $(NEMO)/bin/python || $(PYTHON) -m venv $(NEMO)
	$(NEMO)/bin/python -m pip install --quiet torch==$$(sed -n 's/^torch==//p' constraints.txt)
	$(NEMO)/bin/python -m pip install --quiet $(NEMO_NEEDS)
	$(NEMO)/bin/python -m pip install --quiet --no-deps nemo-toolkit==3.0.0
	touch $@

$(AIS_OLDEST)/.ready:
	test -x $(AIS_OLDEST)/bin/python || $(PYTHON) -m venv $(AIS_OLDEST)
	$(AIS_OLDEST)/bin/python -m pip install --quiet aistore==1.26.0
	touch $@

$(RAY)/.ready: pyproject.toml constraints.txt
	test -x $(RAY)/bin/python || $(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(RAY)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[ray,test]'
	touch $@

$(PEER)/.with-playhead: $(PEER)/.ready pyproject.toml
	grep -v '^lhotse==' constraints.txt > $(PEER)/constraints.txt
	$(PEER)/bin/python -m pip install --quiet --constraint $(PEER)/constraints.txt --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) $(PEER) $(NEMO) $(RAY) $(AIS_OLDEST) site demo-run bench-results.json bench-gpu-results.json bench-gpu-run
