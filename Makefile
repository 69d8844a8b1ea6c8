# SPDX-License-Identifier: Apache-2.0
#
# The short commands; the build itself is meson's.
#
#   make            build into build/; build/krait runs from there
#   make demo       record a real program and look at it
#   make test       every test; the last line is "N passed, N failed"
#   make bench      every measurement of docs/benchmarks.md
#   make install    to $(DESTDIR)$(PREFIX)
#   make reference  write docs/reference.md anew from the verbs' table
#   make format     lay the C files out as .clang-format says
#   make clean      remove what was built
#
# What is missing on a Debian machine is installed first (tools/setup.sh).

PREFIX ?= /usr/local
BUILD := build

.PHONY: all demo test bench install reference format clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@tools/setup.sh build
	@meson setup $(BUILD) --prefix=$(PREFIX)

demo:
	@tools/setup.sh demo
	@$(MAKE) --no-print-directory all
	@tools/demo.sh

test:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory all
	@.venv/bin/python tools/run-tests

bench:
	@tools/setup.sh bench
	@$(MAKE) --no-print-directory all
	@bench/run

install: all
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

reference: all
	@build/krait help markdown >docs/reference.md

format:
	@find src tests include bench -name '*.[ch]' | xargs clang-format -i

clean:
	rm -rf build build-*
