# ONNX's own tests: Debian's libonnx-testdata through gplan, tcc and a comparison.
#? make onnx-score ONNX's own tests: what fails or is refused, totals by op; BLESS=1 keeps the table
.PHONY: onnx-score
ONNX_DATA ?= /usr/share/libonnx-testdata/data

$(B)/tests/onnx/score/score: $(B)/tests/onnx/score/score.o $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -ldl -o $@
check-programs: $(B)/tests/onnx/score/score

onnx-score:
	@$(call need,$(BUILD_PACKAGES) tcc libonnx-testdata)
	@$(build) $(B)/gplan $(B)/tests/onnx/score/score
	@tests/onnx/score.sh $(if $(BLESS),--bless) $(B) $(ONNX_DATA)
