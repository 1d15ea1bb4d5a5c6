# What README shows, and the pictures in a browser. Included by the Makefile.
#? make pictures   draws what README shows; make picture-check tries the pictures in a browser
.PHONY: pictures picture-check
PICTURE_PACKAGES := graphviz librsvg2-bin fonts-dejavu-core

pictures:
	@$(call need,$(BUILD_PACKAGES) $(PICTURE_PACKAGES))
	@$(build) all
	@mkdir -p examples/pictures
	./gplan examples/gpt2.g --train --budget 8G -o build/map.svg
	rsvg-convert build/map.svg -o examples/pictures/gpt2_map.png
	./gplan examples/gpt2.g --train --budget 8G --depth 1 -o build/graph.dot
	dot -Tsvg build/graph.dot -o examples/pictures/gpt2_graph.svg

# The pictures in a browser and with graphviz: `make test` uses those that are there.
picture-check:
	@$(call need,$(BUILD_PACKAGES) $(PICTURE_PACKAGES) chromium)
	@$(build) all
	@tests/picture/run.sh $(abspath gplan)
