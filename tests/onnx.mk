# ONNX's own tests: Debian's libonnx-testdata through gplan, tcc and a comparison.
#? make onnx-score compiles and runs ONNX's own tests; prints what fails or is refused, and totals by op
.PHONY: onnx-score
ONNX_DATA ?= /usr/share/libonnx-testdata/data

$(B)/tests/onnx/score: $(B)/tests/onnx/score.o $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -ldl -o $@
check-programs: $(B)/tests/onnx/score

onnx-score:
	@$(call need,$(BUILD_PACKAGES) tcc libonnx-testdata)
	@$(build) $(B)/gplan $(B)/tests/onnx/score
	@tests/onnx/score.sh $(B) $(ONNX_DATA)
