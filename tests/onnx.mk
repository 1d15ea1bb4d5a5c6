# ONNX's own tests: Debian's libonnx-testdata through gplan, tcc and a comparison.
#? make onnx-score ONNX's own tests: what fails or is refused, totals by op; BLESS=1 keeps the table
#? make onnx-models exports by torch.onnx and models in PyPI packages, beside ONNX Runtime: outputs,
#?                 memory, time; PYTHON=python3, ONLY="resnet50 bert", ONNX_MODELS=folder
.PHONY: onnx-score onnx-models
ONNX_DATA ?= /usr/share/libonnx-testdata/data

$(B)/tests/onnx/score/score: $(B)/tests/onnx/score/score.o $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -ldl -o $@
check-programs: $(B)/tests/onnx/score/score

onnx-score:
	@$(call need,$(BUILD_PACKAGES) tcc libonnx-testdata)
	@$(build) $(B)/gplan $(B)/tests/onnx/score/score
	@tests/onnx/score.sh $(if $(BLESS),--bless) $(B) $(ONNX_DATA)

# Models that others made lie outside of the project, with a Python of their own where PYTHON has
# not what it takes.
ONNX_MODELS ?= $(or $(TMPDIR),/tmp)/gplan_onnx_models
onnx-models:
	@$(call need,$(BUILD_PACKAGES) libgomp1 python3-venv)
	@$(build) gplan
	@PYTHON='$(PYTHON)' tests/onnx/models/models.sh ./gplan '$(ONNX_MODELS)' $(ONLY)
