# SPDX-License-Identifier: MIT
#
# A small front of the CMake build: the commands that people and .ci/run type.
#
# Variables: BENCH_ARGS, FUZZ_S, INTEROP_ARGS, JOBS, TEST_JOBS, CMAKE_ARGS, CTEST_ARGS, RED_ARGS,
# SOFTNDK_WERROR=ON, SOFTNDK_INSTALL=0 (name what is missing, install nothing), PREFIX and DESTDIR
# (install).

prefix ?= /usr/local
PREFIX ?= $(prefix)

export CMAKE_ARGS CTEST_ARGS INTEROP_ARGS JOBS RED_ARGS SOFTNDK_INSTALL SOFTNDK_WERROR TEST_JOBS

# One thing at a time: the parallel work is below, in ninja, make or ctest.
.NOTPARALLEL:

.PHONY: default help build demo check red asan tsan clang coverage format format-check install deb clean \
	bare witness fuzz scale soak bench check-interop setup-build setup-fuzz setup-test

default: build
	@echo
	@echo "Built: build/bin, build/lib. Next: make demo, make check, make help."

help:
	@echo "make build         build into build/ (libraries in build/lib, programs in build/bin)"
	@echo "make demo          set up, build, and run two NDK consumers against each other"
	@echo "make check         set up, build, and run all tests"
	@echo "make asan, tsan    the tests under AddressSanitizer and UBSan, or ThreadSanitizer"
	@echo "make red           every test must notice its named breaches (tests/red)"
	@echo "make fuzz          the fuzz targets, FUZZ_S seconds each (60), with clang (tests/fuzz)"
	@echo "make scale         SCALE_N connections (10000) between two processes; memory of an idle one"
	@echo "make soak          connections and random calls for SOAK_S seconds (600)"
	@echo "make bench         softndk against plain TCP and libfabric and UCX (docs/performance.md)"
	@echo "make check-interop against the siw of a Linux kernel, in QEMU (tests/interop)"
	@echo "make witness       each status that docs/statuses.md names a test for, seen in that test"
	@echo "make clang         build and test with clang"
	@echo "make coverage      the tests, and which lines of src/provider and src/conn they ran"
	@echo "make bare          demo and check in a minimal Debian root (root, mmdebstrap)"
	@echo "make format        lay out the sources; make format-check only looks"
	@echo "make install       into PREFIX ($(PREFIX)), below DESTDIR"
	@echo "make deb           a Debian package, in build/package"
	@echo "make clean         remove build*/"

build:
	@scripts/build.sh build all

demo: setup-build
	@scripts/build.sh build programs
	@scripts/demo.sh

check: setup-test
	@scripts/check.sh plain

red asan tsan clang coverage: setup-test
	@scripts/check.sh $@

setup-build:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh test

setup-fuzz:
	@scripts/setup.sh fuzz

bare:
	@tests/bare/run.sh

fuzz: setup-fuzz
	@tests/fuzz/run.sh

scale: setup-test
	@scripts/build.sh build all -DSOFTNDK_TESTS=ON
	@build/bin/tests/scale -n "$(or $(SCALE_N),10000)" -r 3

soak: setup-test
	@scripts/build.sh build all -DSOFTNDK_TESTS=ON
	@scripts/soak.sh build

# BENCH_ARGS: options of bench/run.py.
bench:
	@scripts/setup.sh bench
	@scripts/build.sh build all -DSOFTNDK_TESTS=ON
	@python3 bench/run.py --json build/bench.json $(BENCH_ARGS)

check-interop:
	@tests/interop/check.sh

witness: setup-test
	@python3 tests/witness/witness.py

format:
	@scripts/format.sh

format-check:
	@scripts/format.sh --check

install:
	@scripts/build.sh build programs
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

deb:
	@scripts/build.sh build programs
	@cd build && cpack -G DEB -B package
	@ls build/package/*.deb

clean:
	rm -rf build build-*
