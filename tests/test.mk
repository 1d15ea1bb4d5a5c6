# `make test`: how its programs are built and run. Included by the Makefile.
#? make test       everything, under the address and undefined-behaviour sanitizers; ONLY=plan: some
#? make bless      rewrites the golden files; look at the diff
#? make lint       clang-format, cppcheck, shellcheck
.PHONY: test check-programs bless lint

# Beside those that build gplan.
TEST_PACKAGES := $(BUILD_PACKAGES) tcc binutils g++ clang libcriterion-dev libubsan1 libasan8 \
	libgomp1 graphviz libonnx-testdata libjpeg62-turbo-dev libpng-dev \
	libopenmpi-dev openmpi-bin libmpich-dev mpich

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

# Programs that read images link what emitted ones do.
$(patsubst %.c,$(B)/%,$(wildcard tests/data/*_test.c)): private LDLIBS += -ljpeg -lpng

# Gradients are compared with differences in double: the kernels, the interpreter and the cases are
# compiled once more with that as their real type.
R := $(B)/real64
$(R)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -DGP_REAL=double -DGP_HALF=double $(CFLAGS) -c $< -o $@
# Tiny slices and blocks, so that a small case has several.
$(R)/gen/adapters.o: private CFLAGS += -ffp-contract=off $(OPENMP) -DGP_CHUNK_REALS=16 \
	-DGP_WEIGHT_LEAST=16
$(R)/gen/adapters.o: $(G)/adapters.c $(KERNELS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -DGP_REAL=double -DGP_HALF=double $(CFLAGS) -c $< -o $@
CASES := $(filter-out %_test.c %_bench.c,$(wildcard tests/ops/*.c))
$(B)/tests/gradients/%_test: $(R)/tests/gradients/%_test.o $(CASES:%.c=$(R)/%.o) \
		$(R)/gen/adapters.o $(B)/libgplan.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcriterion $(LDLIBS) -o $@

# Examples by naive loops in double. The loops are quick and without sanitizers; the rest of what is
# linked has them.
INTERPRETER := $(patsubst %.c,$(B)/%.o,$(filter-out %/subject.c,$(wildcard tests/interpreter/*.c)))
$(INTERPRETER): private OPTIMIZE := -O3 -march=native $(OPENMP)
$(B)/tests/interpreter/interpreter: $(INTERPRETER) $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -ldl -o $@
check-programs: $(B)/tests/interpreter/interpreter

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
# IMAGE_LIBS: libjpeg.a and libpng.a with sanitizers in them, where they were built.
IMAGE_LIBS ?= -ljpeg -lpng
$(B)/tests/fuzz/data_door: private LDLIBS += $(IMAGE_LIBS) -lz
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

check-programs: $(TEST_PROGRAMS) $(B)/gplan $(DOORS) $(B)/tests/random/random_models $(B)/tests/scarce/scarce

test:
	@$(call need,$(TEST_PACKAGES))
	@$(MAKE) --no-print-directory -j2 SANITIZE=1 check-programs
	@tests/run.sh build/$(notdir $(CC))-sanitized $(ONLY)

bless: $(B)/gplan
	@for runner in $(wildcard tests/*/run.sh); do $$runner --bless $(abspath $(B)/gplan); done
	@$(MAKE) --no-print-directory frontend/LANGUAGE.md

# The reference's table of ops is the registry's.
frontend/LANGUAGE.md: $(B)/gplan
	@awk -v gplan='$(B)/gplan' '/<!-- ops:begin -->/ { print; system(gplan " --ops"); skip = 1 } \
	  /<!-- ops:end -->/ { skip = 0 } !skip || /<!-- ops:end -->/ { if (!/ops:begin/) print }' \
	  $@ > $(B)/LANGUAGE.md
	@cmp -s $(B)/LANGUAGE.md $@ || cp $(B)/LANGUAGE.md $@

lint:
	@$(call need,$(BUILD_PACKAGES) clang-format cppcheck shellcheck)
	clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h' '*.cuh' '*.cpp')
	shellcheck -x --severity=warning $$(git ls-files '*.sh') .ci/run
	@$(MAKE) --no-print-directory -j2 $(G)/parser.h $(G)/lexer.h $(G)/ops.inc $(G)/adapters.c
	cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppress=missingIncludeSystem \
	  --enable=warning,performance,portability -I. -I$(G) -D_POSIX_C_SOURCE=200809L -j2 \
	  -icodegen/templates frontend planner codegen examples runtime/embed.c $(G)/adapters.c
	cppcheck --quiet --std=c11 --error-exitcode=1 --suppress=missingIncludeSystem \
	  --suppress='*:runtime/*' -I. \
	  --enable=warning,performance,portability --include=codegen/templates/sample.h \
	  codegen/templates/net.c
