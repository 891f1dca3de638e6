# The short way to everything; CMakePresets.json and scripts/ have the details.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CTEST := ctest --output-on-failure --parallel $(JOBS)
THREADED := base_test comm_test data_test search_test train_test c_api_test
export UBSAN_OPTIONS ?= print_stacktrace=1

release:
	@scripts/install-deps.sh
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)

demo:
	@scripts/demo.sh

test: release
	cd build/release && $(CTEST)
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS)
	cd build/asan && $(CTEST)

test-threads:
	@scripts/install-deps.sh
	cmake --preset tsan
	cmake --build --preset tsan --parallel $(JOBS) --target $(THREADED)
	for test in $(THREADED); do \
	  TSAN_OPTIONS="suppressions=$(CURDIR)/scripts/tsan.supp" build/tsan/tests/$$test || exit 1; \
	done

lint:
	@scripts/install-deps.sh dev
	scripts/lint.sh

check-all: test test-threads lint demo
	scripts/test-docs.sh
	@scripts/install-deps.sh browser
	scripts/test-report.sh

bench:
	@scripts/bench.sh $(BENCH)

format:
	@scripts/install-deps.sh dev
	git ls-files '*.c' '*.cc' '*.h' | xargs clang-format -i

# The tests are not built for it.
install:
	@scripts/install-deps.sh
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target attend attend_c attend_cli
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build

.PHONY: release demo test test-threads lint check-all bench format install clean
