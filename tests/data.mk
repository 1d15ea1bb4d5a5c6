# Data sets: benchmarks, races, and damaged files by the thousand. Included by the Makefile.
#? make bench-data  images a CPU-second and resident memory, beside DataLoader and tf.data
#? make race-data   the ring of a data set under the thread sanitizer
.PHONY: bench-data race-data

DATA_PACKAGES := $(BUILD_PACKAGES) libjpeg62-turbo-dev libpng-dev
D := build/data
$(D)/loader: tests/peers/data/loader.c $(wildcard runtime/c/data*.h)
	@mkdir -p $(@D)
	gcc -I. -std=c11 -O3 -march=native $(WARNINGS) $< -o $@ -ljpeg -lpng -lm -pthread
$(D)/photos.raw: $(D)/loader
	@$< make $(D)/photos 512
# PYTHON=VENV/bin/python: one that has torch and torchvision, or tensorflow.
bench-data:
	@$(call need,$(DATA_PACKAGES))
	@$(build) $(D)/photos.raw
	@$(D)/loader jpeg $(D)/photos 30 0
	@$(D)/loader jpeg $(D)/photos 4 1
	@$(D)/loader jpeg $(D)/photos 4 2
	@$(D)/loader raw $(D)/photos.raw 30 0
	@$(PYTHON) tests/peers/data/loaders.py $(D)/photos 4
	@$(D)/loader jpeg $(D)/photos 4 0

$(D)/race: tests/data/race/race.c $(wildcard runtime/c/data*.h)
	@mkdir -p $(@D)
	gcc -I. -std=c11 -O1 -g -fsanitize=thread $(WARNINGS) $< -o $@ -lm -pthread
race-data:
	@$(call need,$(BUILD_PACKAGES) libtsan2)
	@$(build) $(D)/race
	@$(D)/race
