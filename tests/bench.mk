# Benchmarks. Included by the Makefile.
#? make bench      how good and how fast the planner is: bench-pack, bench-remat, bench-fit
#? make bench-questions  what examples cost at parts of their arena, and how long each question takes
#? make bench-cpu  how fast emitted code is; bench-peers: beside PyTorch and ONNX Runtime
.PHONY: bench

# One target for each folder that has some: bench-pack, bench-remat, bench-fit.
bench: $(sort $(foreach bench,$(BENCHES),bench-$(word 2,$(subst /, ,$(bench)))))
bench-%: $$(addprefix $$(B)/,$$(basename $$(wildcard tests/$$*/*_bench.c)))
	@set -e; for bench in $^; do echo $$bench; $$bench; done

.PHONY: bench-questions
bench-questions: gplan
	@tests/fit/questions.sh $(CURDIR)/gplan $(MODELS)

# Kernels beside the fastest libraries at hand, with one thread and with two, then whole models.
# MKL is a package of Python's index: it goes to build/mkl, and OpenBLAS stands in where it cannot
# be had. bench-peers runs PyTorch and ONNX Runtime on the same models, where PYTHON has them.
BENCH_PACKAGES := $(BUILD_PACKAGES) libgomp1 libdnnl-dev libopenblas0-pthread python3-venv
PYTHON ?= python3
MKL = $(or $(MKL_LIBRARY),$(firstword $(wildcard $(VIRTUAL_ENV)/lib/libmkl_rt.so* \
	build/mkl/lib/libmkl_rt.so*)))
BENCH_CPU = MKL_LIBRARY='$(MKL)' $(B)/tests/cpu/cpu_bench
build/mkl:
	@echo 'Installing: mkl'
	@python3 -m venv $@ && $@/bin/pip install --quiet --disable-pip-version-check mkl || \
	  echo 'mkl cannot be installed: products are compared with OpenBLAS'
.PHONY: bench-cpu bench-cpu-rows bench-peers
$(B)/tests/cpu/cpu_bench: $(wildcard tests/cpu/*.h) $(KERNELS) tests/cpu/cpu_bench.c \
		tests/cpu/peer_blas.c tests/cpu/peer_conv.c
	@mkdir -p $(@D)
	gcc $(CPPFLAGS) -std=gnu11 -O3 -march=native -fopenmp $(WARNINGS) \
	  $(if $(wildcard /usr/include/dnnl.h),-DHAVE_DNNL) $(filter %.c,$^) -o $@ -ldl -lm \
	  $(if $(wildcard /usr/include/dnnl.h),-ldnnl)
bench-cpu:
	@$(call need,$(BENCH_PACKAGES))
	@$(build) gplan $(B)/tests/cpu/cpu_bench $(if $(MKL),,build/mkl)
	@$(MAKE) --no-print-directory bench-cpu-rows
bench-cpu-rows:
	@$(BENCH_CPU) 1
	@tests/cpu/loops.sh ./gplan $(B)/tests/cpu/cpu_bench 1
	@echo
	@$(BENCH_CPU) 2
	@tests/cpu/loops.sh ./gplan $(B)/tests/cpu/cpu_bench 2
	@echo
	@tests/cpu/models.sh ./gplan 2 $$($(BENCH_CPU) 2 peak)
bench-peers:
	@$(call need,$(BENCH_PACKAGES))
	@$(build) gplan $(B)/tests/cpu/cpu_bench
	@$(PYTHON) tests/peers/check.py ./gplan resnet50 gpt2 precision
	@tests/cpu/models.sh ./gplan 2 $$($(BENCH_CPU) 2 peak) $(PYTHON)
