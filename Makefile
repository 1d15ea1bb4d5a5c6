# gplan. The two commands to know: `make demo` and `make test`. `make help` lists the rest.

MAKEFLAGS += --no-builtin-rules
ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
VERSION := 0.1.0

# Debian packages that build gplan; tests/test.mk has those that its tests need beside them.
BUILD_PACKAGES := gcc libc6-dev make flex bison pkg-config libjansson-dev

# One folder of objects for each compiler and kind of build, so that they never mix.
SANITIZE ?=
FUZZ ?=
B := build/$(notdir $(CC))$(if $(SANITIZE),-sanitized)$(if $(FUZZ),-fuzz)
G := build/gen
OPTIMIZE := $(if $(SANITIZE),-O1 -fsanitize=address -fsanitize=undefined \
	-fno-sanitize-recover=undefined -fno-omit-frame-pointer,-O2)
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wwrite-strings
CPPFLAGS += -I. -I$(G) -D_POSIX_C_SOURCE=200809L -DGPLAN_VERSION='"$(VERSION)"'
CFLAGS += -std=c11 -g $(OPTIMIZE) $(WARNINGS) -MMD -MP
OPENMP := $(if $(findstring clang,$(CC)),,-fopenmp)
LDLIBS += -ljansson -lm $(OPENMP)

KERNELS := $(sort $(wildcard runtime/c/*.h runtime/cuda/*.cuh runtime/cuda/*.h))
PAGES := $(sort $(wildcard codegen/web/* codegen/templates/*.[ch]*))
FAMILIES := $(sort $(basename $(notdir $(wildcard frontend/ops/*.c))))
TRANSLATED := $(sort $(basename $(notdir $(wildcard frontend/onnx/ops/*.c))))
FRONTEND := $(wildcard frontend/*.c $(addprefix frontend/,base/*.c ops/*.c onnx/*.c onnx/ops/*.c))
COMMAND := $(filter-out frontend/command/gplan.c,$(wildcard frontend/command/*.c))
TOOLS := codegen/adapters.c runtime/embed.c
SOURCES := $(FRONTEND) $(filter-out $(TOOLS),$(wildcard planner/*.c planner/*/*.c codegen/*.c))
FRONT_OBJECTS := $(FRONTEND:%.c=$(B)/%.o) $(B)/gen/lexer.o $(B)/gen/parser.o
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(B)/gen/lexer.o $(B)/gen/parser.o $(B)/gen/text.o \
	$(B)/gen/adapters.o $(B)/gen/cuda_work.o

#? make            builds ./gplan and libgplan.a (CC=clang works too)
#? make demo       plans a training step under a budget and trains: on dataset-fashion-mnist, if it may
#? make install    PREFIX=/usr/local: program, library, headers, man page, completion
#? make clean      removes what was built
.PHONY: all help setup demo install clean FORCE
all: gplan libgplan.a
help:
	@cat $(filter %file %.mk,$(MAKEFILE_LIST)) | sed -n 's/^#? //p'

gplan: $(B)/gplan
	@cp -f $< $@
libgplan.a: $(B)/libgplan.a
	@cp -f $< $@

$(B)/gplan: $(B)/frontend/command/gplan.o $(B)/libcommand.a $(B)/libgplan.a
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(B)/libgplan.a: $(OBJECTS)
$(B)/libcommand.a: $(COMMAND:%.c=$(B)/%.o)
$(B)/libfrontend.a: $(FRONT_OBJECTS)
$(B)/lib%.a:
	@rm -f $@
	$(AR) qcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(B)/gen/%.o: $(G)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(B)/frontend/ops.o: $(G)/ops.inc
$(B)/frontend/onnx/node.o: $(G)/onnx.inc
# Kernels give the same bits here as in emitted code that was compiled without contraction. Threads
# are real ones, so that tests see what they do, and small results take the way of large ones.
$(B)/gen/adapters.o: private CFLAGS += -ffp-contract=off $(OPENMP) -DGP_STREAM_FROM=64
# What flex and bison write is not ours to warn about.
$(B)/gen/lexer.o $(B)/gen/parser.o: private CFLAGS += -w
$(FRONT_OBJECTS): | $(G)/parser.h $(G)/lexer.h

# ---- What the build writes for itself --------------------------------------------------------

$(G)/ops.inc: LINES = $(patsubst %,'OPS(%)',$(FAMILIES))
$(G)/onnx.inc: LINES = $(patsubst %,'ONNX(%)',$(TRANSLATED))
$(G)/ops.inc $(G)/onnx.inc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(LINES) > $@.new
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
# The tables of kernels: C's, CUDA's, and what CUDA's want as workspace; the structs of their settings.
build/tools/adapters: codegen/adapters.c codegen/settings.c codegen/text.c $(B)/libfrontend.a \
		$(B)/gen/text.o
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MF /dev/null $^ $(LDLIBS) -o $@
ADAPTED := $(addprefix $(G)/,adapters.c adapters.cpp cuda_work.c)
$(ADAPTED) $(G)/settings.h: build/tools/adapters
	@build/tools/adapters $(@F) > $@.new || exit 1; \
	cmp -s $@.new $@ && { rm $@.new; touch $@; } || mv $@.new $@
$(ADAPTED): $(G)/settings.h
$(B)/gen/adapters.o $(B)/gen/cuda_work.o: $(KERNELS)

# ---- The demo and installing -------------------------------------------------------------------

demo:
	@$(call need,$(BUILD_PACKAGES) libgomp1)
	@$(call need,dataset-fashion-mnist) >/dev/null 2>&1 || true
	@$(build) all
	@examples/demo.sh ./gplan

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

# Installs the packages that are missing, or says which they are: $(call need,PACKAGES).
need = $(MAKE) --no-print-directory setup PACKAGES='$(1)'
build = $(MAKE) --no-print-directory -s -j2
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

include tests/test.mk tests/cuda.mk tests/proof.mk tests/bench.mk tests/picture.mk \
	tests/onnx.mk tests/data.mk
-include $(shell find build -name '*.d' 2>/dev/null)
