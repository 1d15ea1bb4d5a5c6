# gplan. The two commands to know: `make demo` and `make test`. `make help` lists the rest.

MAKEFLAGS += --no-builtin-rules
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
VERSION := 0.1.0

# Debian packages. The first line builds gplan, the second is needed by demo, tests and checks.
BUILD_PACKAGES := gcc libc6-dev make flex bison pkg-config libjansson-dev
TEST_PACKAGES := $(BUILD_PACKAGES) tcc binutils g++ clang libcriterion-dev libubsan1 libasan8 libgomp1 graphviz
PICTURE_PACKAGES := graphviz librsvg2-bin fonts-dejavu-core
LINT_PACKAGES := clang-format cppcheck shellcheck

# One folder of objects for each compiler and kind of build, so that they never mix.
SANITIZE ?=
FUZZ ?=
B := build/$(notdir $(CC))$(if $(SANITIZE),-sanitized)$(if $(FUZZ),-fuzz)
R := $(B)/real64
G := build/gen
comma := ,
OPTIMIZE := $(if $(SANITIZE),-O1 -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer,-O2)
ifneq ($(FUZZ),)
OPTIMIZE := -O1 -fsanitize=address,undefined,float-cast-overflow,fuzzer-no-link \
	-fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer
CPPFLAGS += -DGPLAN_SMALL_LIMITS
endif
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wwrite-strings
CPPFLAGS += -I. -I$(G) -D_POSIX_C_SOURCE=200809L -DGPLAN_VERSION='"$(VERSION)"'
CFLAGS += -std=c11 -g $(OPTIMIZE) $(WARNINGS) -MMD -MP
# JSON is read and written with jansson.
OPENMP := $(if $(findstring clang,$(CC)),,-fopenmp)
LDLIBS += -ljansson -lm $(OPENMP)

KERNELS := $(sort $(wildcard runtime/c/*.h runtime/cuda/*.cuh runtime/cuda/*.h))
PAGES := $(sort $(wildcard codegen/web/*))
FAMILIES := $(sort $(basename $(notdir $(wildcard frontend/ops/*.c))))
FRONTEND := $(wildcard frontend/*.c frontend/base/*.c frontend/ops/*.c)
COMMAND := $(filter-out frontend/command/gplan.c,$(wildcard frontend/command/*.c))
TOOLS := codegen/adapters.c runtime/embed.c
SOURCES := $(FRONTEND) $(filter-out $(TOOLS),$(wildcard planner/*.c planner/*/*.c codegen/*.c))
FRONT_OBJECTS := $(FRONTEND:%.c=$(B)/%.o) $(B)/gen/lexer.o $(B)/gen/parser.o
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(B)/gen/lexer.o $(B)/gen/parser.o $(B)/gen/text.o \
	$(B)/gen/adapters.o $(B)/gen/cuda_work.o

.PHONY: cuda-check cuda-report cuda-selftest FORCE pictures picture-check all help setup demo test lint bench bless install clean check-programs soak fuzz fuzz-doors random-models
all: gplan libgplan.a

help:
	@echo 'make            builds ./gplan and libgplan.a (CC=clang works too)'
	@echo 'make demo       plans a training step under a budget, compiles its C, trains with it'
	@echo 'make test       everything, under the address and undefined-behaviour sanitizers; ONLY=plan: some'
	@echo 'make soak       the random tests for long: SOAK=1000 graphs'
	@echo 'make random-models models at random, planned in every way, compiled and run: MODELS=2000 SEED=0'
	@echo 'make fuzz       everything that reads input, by libFuzzer: FUZZ_SECONDS=60 FUZZ_DOORS="pack remat"'
	@echo 'make check-examples  every example at its full size against naive loops in double; EXAMPLES=gpt2'
	@echo 'make cuda-check compiles and links every example for GPUs with nvcc, where there is one;'
	@echo '                with a GPU runs some on it beside C: steps, replays, files'
	@echo 'make cuda-report registers, shared memory and spills of every CUDA kernel'
	@echo 'make cuda-selftest compares every CUDA kernel with C on a GPU'
	@echo 'make mutants    puts small faults into the sources and counts those that tests find: MUTANTS=300'
	@echo 'make check-peers compares ops, optimizers and models with PyTorch; PYTHON=... that has it'
	@echo 'make lint       clang-format, cppcheck, shellcheck'
	@echo 'make bench      how good and how fast the planner is: bench-pack, bench-remat, bench-fit'
	@echo 'make bench-cpu  how fast emitted code is; bench-peers: beside PyTorch and ONNX Runtime'
	@echo 'make bless      rewrites the golden files; look at the diff'
	@echo 'make pictures   draws what README shows; make picture-check tries the pictures in a browser'
	@echo 'make install    PREFIX=/usr/local: program, library, headers, man page, completion'
	@echo 'make clean      removes what was built'

gplan: $(B)/gplan
	@cp $< $@
libgplan.a: $(B)/libgplan.a
	@cp $< $@

$(B)/gplan: $(B)/frontend/command/gplan.o $(B)/libcommand.a $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(B)/libgplan.a: $(OBJECTS)
	@rm -f $@
	$(AR) qcs $@ $^
# What only the command needs; tests link it too.
$(B)/libcommand.a: $(COMMAND:%.c=$(B)/%.o)
	@rm -f $@
	$(AR) qcs $@ $^
$(B)/libfrontend.a: $(FRONT_OBJECTS)
	@rm -f $@
	$(AR) qcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(B)/gen/%.o: $(G)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(B)/frontend/ops.o: $(G)/ops.inc
# Kernels give the same bits here as in emitted code that was compiled without contraction.
# Threads are real ones (gcc brings its own library for them), so that tests see what they do.
$(B)/gen/adapters.o $(R)/gen/adapters.o: private CFLAGS += -ffp-contract=off $(OPENMP)
# Small results take the way of large ones.
$(B)/gen/adapters.o: private CFLAGS += -DGP_STREAM_LEAST=64
# Tiny slices and stretches, so that a small case has several.
$(R)/gen/adapters.o: private CFLAGS += -DGP_SLICE_REALS=16 -DGP_WEIGHT_LEAST=16
# What flex and bison write is not ours to warn about.
$(B)/gen/lexer.o $(B)/gen/parser.o: private CFLAGS += -w
$(FRONT_OBJECTS): | $(G)/parser.h $(G)/lexer.h

# ---- What the build writes for itself --------------------------------------------------------

$(G)/ops.inc: FORCE
	@mkdir -p $(@D)
	@for family in $(FAMILIES); do echo "OPS($$family)"; done > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(G)/parser.c $(G)/parser.h &: frontend/parser.y
	@mkdir -p $(@D)
	bison --warnings=all,no-yacc --defines=$(G)/parser.h --output=$(G)/parser.c $<
$(G)/lexer.c $(G)/lexer.h &: frontend/lexer.l
	@mkdir -p $(@D)
	flex --header-file=$(G)/lexer.h --outfile=$(G)/lexer.c $<
$(G)/text.c: runtime/embed.c $(KERNELS) $(PAGES) Makefile
	@mkdir -p $(@D) build/tools
	$(CC) $(CPPFLAGS) -std=c11 -O1 $< -o build/tools/embed
	build/tools/embed $(KERNELS) $(PAGES) > $@.new && mv $@.new $@
# The tables of kernels: C's, CUDA's, and what CUDA's want as workspace.
build/tools/adapters: codegen/adapters.c $(B)/libfrontend.a $(B)/gen/text.o
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MF /dev/null $^ $(LDLIBS) -o $@
adapt = build/tools/adapters $(1) > $@.new; \
	cmp -s $@.new $@ && { rm $@.new; touch $@; } || mv $@.new $@
$(G)/adapters.c: build/tools/adapters
	@mkdir -p $(@D)
	@set -e; $(call adapt,c)
$(G)/adapters.cpp: build/tools/adapters
	@set -e; $(call adapt,cuda)
$(G)/cuda_work.c: build/tools/adapters
	@set -e; $(call adapt,work)
$(B)/gen/adapters.o $(B)/gen/cuda_work.o: $(KERNELS)

# ---- Tests -----------------------------------------------------------------------------------

# tests/AREA/NAME_test.c is a Criterion program, linked with the helpers of its folder (the .c
# files there that are neither tests nor benchmarks); tests/AREA/run.sh takes the program to test.
TESTS := $(wildcard tests/*/*_test.c)
TEST_PROGRAMS := $(TESTS:%.c=$(B)/%)
BENCHES := $(wildcard tests/*/*_bench.c)
helpers = $(patsubst %.c,$(B)/%.o,$(filter-out %_test.c %_bench.c,$(wildcard $(1)*.c)))

.SECONDARY:
.SECONDEXPANSION:
$(B)/tests/%_test: $(B)/tests/%_test.o $$(call helpers,$$(dir tests/$$*)) $(B)/libcommand.a \
		$(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcriterion $(LDLIBS) -o $@
$(B)/tests/%_bench: $(B)/tests/%_bench.o $$(call helpers,$$(dir tests/$$*)) $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

# Gradients are compared with differences in double: the kernels, the interpreter and the cases are
# compiled once more with that as their real type.
$(R)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -DGP_REAL=double $(CFLAGS) -c $< -o $@
$(R)/gen/adapters.o: $(G)/adapters.c $(KERNELS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -DGP_REAL=double $(CFLAGS) -c $< -o $@
CASES := $(filter-out %_test.c %_bench.c,$(wildcard tests/ops/*.c))
$(B)/tests/gradients/%_test: $(R)/tests/gradients/%_test.o $(CASES:%.c=$(R)/%.o) \
		$(R)/gen/adapters.o $(B)/libgplan.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcriterion $(LDLIBS) -o $@

# CUDA's kernels, compiled as C++ and run by tests/cuda_on_cpu: the same tests once more, linked
# with CUDA's table of kernels.
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
CXXFLAGS += -std=c++17 -g $(OPTIMIZE) -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off -MMD -MP
EMULATOR := $(patsubst %.cpp,$(B)/%.o,$(filter-out %_test.cpp,$(wildcard tests/cuda_on_cpu/*.cpp)))
ON_CPU := -DGP_CUDA_ON_CPU -Itests/cuda_on_cpu
$(EMULATOR) $(B)/tests/cuda_on_cpu/emulator_test.o $(B)/tests/cuda_on_cpu/large_test.o: $(B)/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(ON_CPU) $(CXXFLAGS) -c $< -o $@
$(B)/cuda/adapters.o $(R)/cuda/adapters.o: $(G)/adapters.cpp $(KERNELS)
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(ON_CPU) $(CXXFLAGS) -c $< -o $@
# Tiny limits, so that a small case has several slices and parts, counts in 64 bits, and has more
# to do than a grid has blocks. No sanitizer watches: differences run each case hundreds of times.
$(R)/cuda/adapters.o: private CXXFLAGS := $(filter-out $(OPTIMIZE),$(CXXFLAGS)) -O1
$(R)/cuda/adapters.o: private CPPFLAGS += -DGP_REAL=double -DGP_SLICE_REALS=16 -DGP_PART_DEPTH=8 \
	-DGP_NARROW=8 -DGP_MAX_GRID=7
CUDA_TESTS := $(B)/tests/cuda_on_cpu/emulator_test $(B)/tests/cuda_on_cpu/large_test \
	$(B)/cuda/tests/ops/ops_test $(B)/cuda/tests/ops/index_test \
	$(B)/cuda/tests/ops/random_test $(B)/cuda/tests/ops/reduce_test \
	$(B)/cuda/tests/ops/special_test \
	$(B)/cuda/tests/ops/concat_test $(B)/cuda/tests/plan/random_test \
	$(B)/cuda/tests/gradients/ops_test
$(B)/tests/cuda_on_cpu/emulator_test: $(B)/tests/cuda_on_cpu/emulator_test.o $(EMULATOR)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -lcriterion -lm -o $@
$(B)/tests/cuda_on_cpu/large_test: $(B)/tests/cuda_on_cpu/large_test.o $(B)/cuda/adapters.o \
		$(EMULATOR)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -lcriterion -lm -o $@
$(B)/cuda/tests/gradients/%_test: $(R)/tests/gradients/%_test.o $(CASES:%.c=$(R)/%.o) \
		$(R)/cuda/adapters.o $(EMULATOR) $(B)/libgplan.a
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -lcriterion $(LDLIBS) -o $@
$(B)/cuda/tests/%_test: $(B)/tests/%_test.o $$(call helpers,$$(dir tests/$$*)) \
		$(B)/cuda/adapters.o $(EMULATOR) $(B)/libgplan.a
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -lcriterion $(LDLIBS) -o $@

# Examples by naive loops in double. The loops are quick and without sanitizers; the rest of what is
# linked has them.
INTERPRETER := $(patsubst %.c,$(B)/%.o,$(filter-out %/subject.c,$(wildcard tests/interpreter/*.c)))
$(INTERPRETER): private OPTIMIZE := -O3 -march=native $(OPENMP)
$(B)/tests/interpreter/interpreter: $(INTERPRETER) $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -ldl -o $@
check-programs: $(B)/tests/interpreter/interpreter
.PHONY: check-examples
check-examples:
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) libgomp1'
	@$(MAKE) --no-print-directory -s -j2 $(B)/gplan $(B)/tests/interpreter/interpreter
	@tests/interpreter/run.sh $(B)/gplan full $(EXAMPLES)

# Every example's .cu through nvcc, as tests/cuda/nvcc.sh says for which architectures; `make test`
# takes a few for one. Then whole models beside C, where there is a GPU.
cuda-check:
	@$(MAKE) --no-print-directory -s setup PACKAGES='$(BUILD_PACKAGES) g++'
	@$(MAKE) --no-print-directory -s gplan
	@tests/cuda/nvcc.sh ./gplan all
	@tests/cuda/gpu.sh ./gplan

# Kernels that say of each load and store where it goes: see tests/cuda_on_cpu/race.h. Without the
# other sanitizers, which cannot watch the same code.
$(B)/race/adapters.o: $(G)/adapters.cpp $(KERNELS)
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(ON_CPU) $(filter-out $(OPTIMIZE),$(CXXFLAGS)) -O1 -fsanitize=thread \
	  -DGP_MAX_GRID=3 -c $< -o $@
$(B)/tests/barriers/barriers_test: $(B)/tests/barriers/barriers_test.o $(CASES:%.c=$(B)/%.o) \
		$(B)/race/adapters.o $(EMULATOR) $(B)/libgplan.a
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -lcriterion $(LDLIBS) -o $@

# The self-test for a GPU, tests/selftest: the cases of tests/ops by C's kernels and by CUDA's, in
# one program. `make test` runs one that was compiled for the CPU; nvcc makes the real one.
NVCC := $(or $(shell command -v nvcc),/usr/local/cuda/bin/nvcc)
CUDA_FLAGS := -std=c++17 -Werror all-warnings $(CPPFLAGS)
# Empty: all that kernels are made for.
ARCHITECTURES ?=
TABLE_CU := $(B)/selftest/table$(subst $() ,_,_$(strip $(ARCHITECTURES))).o
BOTH_TABLES := $(patsubst %.c,$(B)/%.o,$(filter-out %/run_memory.c,$(CASES)) \
	tests/selftest/selftest.c) $(B)/selftest/c.o
$(B)/selftest/c.o: $(B)/gen/adapters.o
	@mkdir -p $(@D)
	objcopy --redefine-sym runtime_kernel=runtime_kernel_c $< $@
$(B)/selftest/cuda.o: $(B)/cuda/adapters.o
	@mkdir -p $(@D)
	objcopy --redefine-sym runtime_kernel=runtime_kernel_cuda $< $@
$(B)/selftest/device.o: tests/selftest/device.cu
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(ON_CPU) $(CXXFLAGS) -x c++ -c $< -o $@
$(B)/selftest/on_cpu: $(BOTH_TABLES) $(B)/selftest/cuda.o $(B)/selftest/device.o $(EMULATOR) \
		$(B)/libgplan.a
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(TABLE_CU): $(G)/adapters.cpp $(KERNELS)
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) $$(tests/cuda/architectures.sh '$(NVCC)' flags $(ARCHITECTURES)) \
	  -Druntime_kernel=runtime_kernel_cuda --threads 2 -x cu -c $< -o $@
$(B)/selftest/device.cu.o: tests/selftest/device.cu
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) -c $< -o $@
$(B)/selftest/on_device: $(BOTH_TABLES) $(TABLE_CU) $(B)/selftest/device.cu.o \
		$(B)/libgplan.a
	$(NVCC) $^ -lcublas $(filter -l%,$(LDLIBS)) $(if $(OPENMP),-lgomp) -o $@
cuda-selftest:
	@[ -x '$(NVCC)' ] || { echo 'there is no nvcc: the self-test needs the CUDA toolkit'; exit 1; }
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) g++ libgomp1'
	@$(MAKE) --no-print-directory -j2 $(B)/selftest/on_device
	@$(B)/selftest/on_device

# Registers, shared memory and spills of every kernel.
cuda-report:
	@$(MAKE) --no-print-directory -s setup PACKAGES='$(BUILD_PACKAGES) g++'
	@$(MAKE) --no-print-directory -s $(G)/adapters.cpp
	@tests/selftest/report.sh '$(NVCC)' $(G)/adapters.cpp $(ARCHITECTURES)

# gplan with memory that runs out and files that cannot be written: tests/scarce.
SCARCE := $(foreach call,open write close fsync fchmod rename link,-Wl,--wrap=$(call))
$(B)/tests/scarce/scarce: $(B)/tests/scarce/scarce.o $(B)/tests/fuzz/gplan.o $(B)/libcommand.a \
		$(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $(SCARCE) $^ $(LDLIBS) -o $@

# Doors: what reads the input of others, called in one process with a fuzzer (tests/fuzz/door.h).
# With FUZZ that is libFuzzer; else replay.c, which tries the inputs that are kept.
DOORS := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/*_door.c))
DOOR_OBJECTS := $(B)/tests/fuzz/door.o $(B)/tests/fuzz/json_changes.o $(B)/tests/fuzz/gplan.o \
	$(if $(FUZZ),,$(B)/tests/fuzz/replay.o)
$(DOORS): %: %.o $(DOOR_OBJECTS) $(B)/libcommand.a $(B)/libgplan.a
	$(CC) $(CFLAGS) $(if $(FUZZ),-fsanitize=fuzzer) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(B)/tests/fuzz/gplan.o: frontend/command/gplan.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Dmain=gplan_main $(CFLAGS) -c $< -o $@
$(B)/tests/fuzz/net.c: tests/fuzz/loader.g $(B)/gplan
	@mkdir -p $(@D)
	ASAN_OPTIONS=detect_leaks=0 $(B)/gplan $< --quiet -o $@
$(B)/tests/fuzz/net.o: $(B)/tests/fuzz/net.c
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(B)/tests/fuzz/safetensors_door: $(B)/tests/fuzz/net.o
$(B)/tests/fuzz/safetensors_door.o: private CPPFLAGS += -I$(B)/tests/fuzz
$(B)/tests/fuzz/safetensors_door.o: $(B)/tests/fuzz/net.c

# Random models through gplan, tcc and gcc; see tests/random/random_models.c. What they are compared
# with is computed by kernels that tcc has compiled too.
RANDOM_OBJECTS := $(patsubst %.c,$(B)/%.o,$(wildcard tests/random/*.c) tests/plan/run_plain.c \
	tests/plan/run_step.c tests/plan/random_graph.c)
$(B)/random/adapters.o: $(G)/adapters.c $(KERNELS)
	@mkdir -p $(@D)
	tcc $(CPPFLAGS) -c $< -o $@
$(B)/tests/random/random_models: $(RANDOM_OBJECTS) $(B)/random/adapters.o $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(wildcard /usr/lib/*/tcc/libtcc1.a) $(LDLIBS) -z noexecstack -o $@

check-programs: $(CUDA_TESTS) $(TEST_PROGRAMS) $(B)/selftest/on_cpu $(B)/gplan $(DOORS) \
	$(B)/tests/random/random_models $(B)/tests/scarce/scarce

test:
	@$(MAKE) --no-print-directory setup PACKAGES='$(TEST_PACKAGES)'
	@$(MAKE) --no-print-directory -j2 SANITIZE=1 check-programs
	@tests/run.sh build/$(notdir $(CC))-sanitized $(ONLY)

# The same tests with more seeds, under the sanitizers; the last lines say what training came to.
SOAK ?= 1000
SOAKED := $(shell grep -l GPLAN_SOAK $(TESTS)) cuda/tests/plan/random_test.c \
	cuda/tests/gradients/ops_test.c cuda/tests/ops/attention_test.c
PROOF := build/proof
soak:
	@$(MAKE) --no-print-directory setup PACKAGES='$(TEST_PACKAGES)'
	@$(MAKE) --no-print-directory -j2 SANITIZE=1 $(SOAKED:%.c=build/$(notdir $(CC))-sanitized/%)
	@rm -f $(PROOF)
	@set -e; for test in $(SOAKED:%.c=build/$(notdir $(CC))-sanitized/%); do \
	  echo "$$test: $(SOAK) graphs"; \
	  GPLAN_PROOF=$(abspath $(PROOF)) GPLAN_SOAK=$(SOAK) $$test -j2 --color=never; done
	@tests/plan/proof.sh $(PROOF)

# Random models, and how many of them had what.
MODELS ?= 2000
SEED ?= 0
random-models:
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) tcc libgomp1'
	@$(MAKE) --no-print-directory -s -j2 gplan $(B)/tests/random/random_models
	@tests/random/models.sh $(B)/tests/random/random_models ./gplan $(SEED) $(MODELS)

FUZZ_SECONDS ?= 60
FUZZ_DOORS ?= $(patsubst tests/fuzz/%_door.c,%,$(wildcard tests/fuzz/*_door.c))
FUZZ_PACKAGES := $(BUILD_PACKAGES) clang libclang-rt-dev
fuzz:
	@$(MAKE) --no-print-directory setup PACKAGES='$(FUZZ_PACKAGES)'
	@$(MAKE) --no-print-directory -j2 CC=clang FUZZ=1 fuzz-doors
	@tests/fuzz/fuzz.sh build/clang-fuzz $(FUZZ_SECONDS) $(FUZZ_DOORS)
fuzz-doors: $(DOORS) $(B)/gplan

bless: $(B)/gplan
	@for runner in $(wildcard tests/*/run.sh); do $$runner --bless $(abspath $(B)/gplan); done
	@$(MAKE) --no-print-directory frontend/LANGUAGE.md

# One target for each folder that has some: bench-pack, bench-remat, bench-fit.
bench: $(sort $(foreach bench,$(BENCHES),bench-$(word 2,$(subst /, ,$(bench)))))
bench-%: $$(addprefix $$(B)/,$$(basename $$(wildcard tests/$$*/*_bench.c)))
	@set -e; for bench in $^; do echo $$bench; $$bench; done

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
	@$(MAKE) --no-print-directory setup PACKAGES='$(BENCH_PACKAGES)'
	@$(MAKE) --no-print-directory -s gplan $(B)/tests/cpu/cpu_bench $(if $(MKL),,build/mkl)
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
	@$(MAKE) --no-print-directory setup PACKAGES='$(BENCH_PACKAGES)'
	@$(MAKE) --no-print-directory -s gplan $(B)/tests/cpu/cpu_bench
	@$(PYTHON) tests/peers/check.py ./gplan resnet50 gpt2
	@tests/cpu/models.sh ./gplan 2 $$($(BENCH_CPU) 2 peak) $(PYTHON)

# Small faults in the sources, one at a time, and the share of them that the tests find.
MUTANTS ?= 300
.PHONY: mutants
mutants:
	@$(MAKE) --no-print-directory setup PACKAGES='$(TEST_PACKAGES) bc git'
	@tests/mutants/mutants.sh $(MUTANTS) $(SEED) $(FILES)

# The same weights and inputs through gplan, PyTorch and ONNX Runtime: see tests/peers/check.py.
.PHONY: check-peers
check-peers:
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) libgomp1'
	@$(MAKE) --no-print-directory -s -j2 gplan
	@$(PYTHON) tests/peers/check.py ./gplan $(ONLY)

lint:
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) $(LINT_PACKAGES)'
	clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h' '*.cuh' '*.cpp')
	shellcheck -x --severity=warning $$(git ls-files '*.sh') .ci/run
	@$(MAKE) --no-print-directory -j2 $(G)/parser.h $(G)/lexer.h $(G)/ops.inc $(G)/adapters.c
	cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppress=missingIncludeSystem \
	  --enable=warning,performance,portability -I. -I$(G) -D_POSIX_C_SOURCE=200809L -j2 \
	  frontend planner codegen examples runtime/embed.c $(G)/adapters.c

# ---- The demo and installing -------------------------------------------------------------------

demo:
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) libgomp1'
	@$(MAKE) --no-print-directory -s -j2 all
	@examples/demo.sh ./gplan

# What README shows.
pictures:
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) $(PICTURE_PACKAGES)'
	@$(MAKE) --no-print-directory -s -j2 all
	@mkdir -p examples/pictures
	./gplan examples/gpt2.g --train --budget 8G -o build/map.svg
	rsvg-convert build/map.svg -o examples/pictures/gpt2_map.png
	./gplan examples/gpt2.g --train --budget 8G --depth 1 -o build/graph.dot
	dot -Tsvg build/graph.dot -o examples/pictures/gpt2_graph.svg

# The pictures in a browser and with graphviz: `make test` uses those that are there.
picture-check:
	@$(MAKE) --no-print-directory setup PACKAGES='$(BUILD_PACKAGES) $(PICTURE_PACKAGES) chromium'
	@$(MAKE) --no-print-directory -s -j2 all
	@tests/picture/run.sh $(abspath gplan)

# The reference's table of ops is the registry's.
frontend/LANGUAGE.md: $(B)/gplan
	@awk -v gplan='$(B)/gplan' '/<!-- ops:begin -->/ { print; system(gplan " --ops"); skip = 1 } \
	  /<!-- ops:end -->/ { skip = 0 } !skip || /<!-- ops:end -->/ { if (!/ops:begin/) print }' \
	  $@ > $(B)/LANGUAGE.md
	@cmp -s $(B)/LANGUAGE.md $@ || cp $(B)/LANGUAGE.md $@

HEADERS := planner/pack/pack.h planner/remat/remat.h
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	  $(DESTDIR)$(PREFIX)/include/gplan $(DESTDIR)$(PREFIX)/share/man/man1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 gplan $(DESTDIR)$(PREFIX)/bin/gplan
	install -m 644 libgplan.a $(DESTDIR)$(PREFIX)/lib/libgplan.a
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/gplan/
	./gplan --man > $(DESTDIR)$(PREFIX)/share/man/man1/gplan.1
	./gplan --completion > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/gplan
	printf 'prefix=%s\nName: gplan\nDescription: %s\nVersion: %s\nLibs: %s\nCflags: %s\n' \
	  '$(PREFIX)' 'Memory planning: packing and rematerialization' '$(VERSION)' \
	  '-L$${prefix}/lib -lgplan -lm' '-I$${prefix}/include' \
	  > $(DESTDIR)$(PREFIX)/lib/pkgconfig/gplan.pc

# ---- Set-up: installs the packages that are missing, or says which they are --------------------

PACKAGES ?= $(TEST_PACKAGES)
setup:
	@missing=''; for package in $(PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || \
	  missing="$$missing $$package"; done; \
	[ -z "$$missing" ] && exit 0; \
	root=''; [ "$$(id -u)" = 0 ] || root=sudo; \
	if ! command -v apt-get >/dev/null || { [ -n "$$root" ] && ! command -v sudo >/dev/null; }; then \
	  echo "Please install these packages first:$$missing"; exit 1; fi; \
	echo "Installing:$$missing"; \
	$$root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$root apt-get install -y -qq \
	  $$missing >/dev/null

clean:
	rm -rf build gplan libgplan.a

-include $(shell find build -name '*.d' 2>/dev/null)
