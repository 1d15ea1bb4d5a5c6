# CUDA's kernels on the CPU for `make test`, and what needs nvcc or a GPU. Included by the Makefile.
#? make cuda-check compiles and links every example for GPUs with nvcc, where there is one;
#?                 with a GPU runs some on it beside C: steps, replays, files
#? make cuda-report registers, shared memory and spills of every CUDA kernel
#? make cuda-selftest compares every CUDA kernel with C on a GPU
.PHONY: cuda-check cuda-report cuda-selftest

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
# So that small cases round parameters to 16 bits in several parts.
$(B)/cuda/adapters.o: private CPPFLAGS += -DGP_ROUNDED_REALS=16 -DGP_ROUNDED_LEAST=2
# Tiny limits, so that a small case has several slices and parts, counts in 64 bits, and has more
# to do than a grid has blocks. No sanitizer watches: differences run each case hundreds of times.
$(R)/cuda/adapters.o: private CXXFLAGS := $(filter-out $(OPTIMIZE),$(CXXFLAGS)) -O1
$(R)/cuda/adapters.o: private CPPFLAGS += -DGP_REAL=double -DGP_HALF=double -DGP_CHUNK_REALS=16 -DGP_PART_DEPTH=8 \
	-DGP_NARROW=8 -DGP_MAX_GRID=7
CUDA_TESTS := $(B)/tests/cuda_on_cpu/emulator_test $(B)/tests/cuda_on_cpu/large_test \
	$(B)/cuda/tests/ops/ops_test $(B)/cuda/tests/ops/index_test \
	$(B)/cuda/tests/ops/random_test $(B)/cuda/tests/ops/reduce_test \
	$(B)/cuda/tests/ops/special_test $(B)/cuda/tests/ops/cast_test \
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

# Every example's .cu through nvcc, as tests/cuda/nvcc.sh says for which architectures; `make test`
# takes a few for one. Then whole models beside C, where there is a GPU.
cuda-check:
	@$(call need,$(BUILD_PACKAGES) g++)
	@$(build) gplan
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
	@$(call need,$(BUILD_PACKAGES) g++ libgomp1)
	@$(MAKE) --no-print-directory -j2 $(B)/selftest/on_device
	@$(B)/selftest/on_device

# Registers, shared memory and spills of every kernel.
cuda-report:
	@$(call need,$(BUILD_PACKAGES) g++)
	@$(build) $(G)/adapters.cpp
	@tests/selftest/report.sh '$(NVCC)' $(G)/adapters.cpp $(ARCHITECTURES)

check-programs: $(CUDA_TESTS) $(B)/selftest/on_cpu
