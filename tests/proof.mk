# Evidence that takes longer than `make test` may: run it before a release. Included by the Makefile.
#? make soak       the random tests for long: SOAK=1000 graphs
#? make random-models models at random, planned in every way, compiled and run: MODELS=2000 SEED=0
#?                 WORKERS=2
#? make fuzz       everything that reads input, by libFuzzer: FUZZ_SECONDS=60 FUZZ_DOORS="pack remat";
#?                 models that were taken, compiled and run: FUZZ_RUNS=10
#? make check-examples every example at its full size against naive loops in double; EXAMPLES=gpt2
#? make check-precision  trains in f32, bf16 and f16: losses on held-out samples, three seeds
#? make check-peers compares ops, optimizers and models with PyTorch; PYTHON=... that has it
#? make mutants    puts small faults into the sources and counts those that tests find: MUTANTS=300
#? make same       compares what every example computes with another revision: BASE=main~1
.PHONY: soak random-models fuzz fuzz-doors check-examples check-precision check-peers mutants same

# The same tests with more seeds, under the sanitizers; the last lines say what training came to.
SOAK ?= 1000
SOAKED := $(shell grep -l GPLAN_SOAK $(TESTS)) cuda/tests/plan/random_test.c \
	cuda/tests/gradients/ops_test.c cuda/tests/ops/attention_test.c
PROOF := build/proof
soak:
	@$(call need,$(TEST_PACKAGES))
	@$(MAKE) --no-print-directory -j2 SANITIZE=1 $(SOAKED:%.c=build/$(notdir $(CC))-sanitized/%)
	@rm -f $(PROOF)
	@set -e; for test in $(SOAKED:%.c=build/$(notdir $(CC))-sanitized/%); do \
	  echo "$$test: $(SOAK) graphs"; \
	  GPLAN_PROOF=$(abspath $(PROOF)) GPLAN_SOAK=$(SOAK) $$test -j2 --color=never; done
	@tests/plan/proof.sh $(PROOF)

# Random models, and how many of them had what.
MODELS ?= 2000
SEED ?= 0
WORKERS ?= 2
random-models:
	@$(call need,$(BUILD_PACKAGES) tcc libgomp1)
	@$(build) gplan $(B)/tests/random/random_models
	@WORKERS=$(WORKERS) tests/random/models.sh $(B)/tests/random/random_models ./gplan $(SEED) $(MODELS)

# Every door (tests/fuzz) by libFuzzer, with limits that small inputs reach.
ifneq ($(FUZZ),)
OPTIMIZE := -O1 -fsanitize=address,undefined,float-cast-overflow,fuzzer-no-link \
	-fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer
CPPFLAGS += -DGPLAN_SMALL_LIMITS
# A planner's loops compare nothing that a fuzzer could learn an input from, and all of the time.
$(B)/planner/%.o: private CFLAGS += -fno-sanitize-coverage=trace-cmp
endif
FUZZ_SECONDS ?= 60
FUZZ_DOORS ?= $(patsubst tests/fuzz/%_door.c,%,$(wildcard tests/fuzz/*_door.c))
FUZZ_RUNS ?= 10
FUZZ_PACKAGES := $(BUILD_PACKAGES) clang libclang-rt-dev
fuzz:
	@$(call need,$(FUZZ_PACKAGES))
	@$(MAKE) --no-print-directory -j2 CC=clang FUZZ=1 fuzz-doors
	@FUZZ_RUNS=$(FUZZ_RUNS) tests/fuzz/fuzz.sh build/clang-fuzz $(FUZZ_SECONDS) $(FUZZ_DOORS)
fuzz-doors: $(DOORS) $(B)/gplan

# Every example as it is, beside an interpreter of naive loops in double.
check-examples:
	@$(call need,$(BUILD_PACKAGES) libgomp1)
	@$(build) $(B)/gplan $(B)/tests/interpreter/interpreter
	@tests/interpreter/run.sh $(B)/gplan full $(EXAMPLES)

# Small faults in the sources, one at a time, and the share of them that the tests find.
MUTANTS ?= 300
mutants:
	@$(call need,$(TEST_PACKAGES) bc git)
	@tests/mutants/mutants.sh $(MUTANTS) $(SEED) $(FILES)

# Models that learn as well in 16 bits.
check-precision:
	@$(call need,$(BUILD_PACKAGES) libgomp1 dataset-fashion-mnist fortunes)
	@$(build) gplan
	@tests/main/quality.sh ./gplan

# The same weights and inputs through gplan, PyTorch and ONNX Runtime: see tests/peers/check.py.
check-peers:
	@$(call need,$(BUILD_PACKAGES) libgomp1)
	@$(build) gplan
	@$(PYTHON) tests/peers/check.py ./gplan $(ONLY)

# Arenas, costs, and hashes of what every example computes, here and at another revision.
BASE ?= HEAD
same:
	@$(call need,$(BUILD_PACKAGES) git)
	@$(build) gplan
	@tests/same/compare.sh ./gplan $(BASE) $(EXAMPLES)
