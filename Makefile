# SPDX-License-Identifier: Apache-2.0
#
# The short commands, of scripts in tools/ that work without make too; the build itself is meson's.
#
#   make            build into build/; build/krait runs from there
#   make demo       record a real program and look at it
#   make test       what every change has to pass; the last line is "N passed, N failed"
#   make test T=x   only the tests whose names contain x
#   make test-all   the long tests too; T=x as above
#   make bench      every measurement of docs/benchmarks.md
#   make install    to $(DESTDIR)$(PREFIX)
#   make reference  write docs/reference.md and docs/view_api.md anew from the tables in the source
#   make format     lay the C files out as .clang-format says
#   make clean      remove what was built
#
# What is missing on a Debian machine is installed first (tools/setup.sh).

PREFIX ?= /usr/local
export PREFIX

# make T=name: one test
T ?=

.PHONY: all demo test test-all bench install reference format clean

all:
	@tools/build

demo:
	@tools/demo

test:
	@tools/test $(if $(T),--only '$(T)')

test-all:
	@tools/test --all $(if $(T),--only '$(T)')

bench:
	@tools/setup.sh bench
	@tools/build
	@bench/run

install:
	@DESTDIR='$(DESTDIR)' tools/install

reference: all
	@build/krait help markdown >docs/reference.md
	@build/krait help endpoints >docs/view_api.md

format:
	@tools/c_files | xargs clang-format -i

clean:
	rm -rf build build-*
