# make                    ./rundb for the pair that config.h names
# make NAME=value ...     the same with switches of config.h set otherwise (CC_ALG=SILO THREAD_CNT=8)
# make rundb-all          ./rundb-all with every pair, chosen by --cc, --log ...
# make rundb-charged      ./rundb-charged with pairs that pay for reads of persistent memory (PM_READS)
# make rundb-timed        ./rundb-timed with a few pairs that tell where their workers' time goes (TIME_PARTS)
# make log_dump           ./log_dump, which prints and checks a log
# make micro              every benchmarks/micro/NAME.cpp as build/micro/NAME
# make tests              build/all_tests; SANITIZE=thread and SANITIZE=address: build/VARIANT/all_tests;
#                         TESTS='FOLDER FILE ...': those alone, and PAIRS='...': with these pairs, or all of them
#                         with LOCK_TABLES='CONTROL ...': those of them that lock in a table too
# make fuzz               build/fuzz/NAME, a libFuzzer target for each tests/fuzz/NAME_fuzz.cpp (needs clang)
# make torture            build/simulation/torture: the engine with threads as fibres, on disks that crash
# make sim_tests          build/simulation/sim_tests: tests of multi_master/ on the same fibres and a simulated network
# make cluster_model      build/simulation/cluster_model: masters on virtual cores and a network of a model
# make line_transfers     build/lines/line_transfers: the engine on the cores and caches of a model (needs g++)
# make mutant_tests       build/mutants/all_tests: the tests that mutants name; DBX_MUTANT=NAME runs them under one
# make kill_points        build/kill_at.so, which kills ./rundb-all at a named call on a file
# make check              format, lint, include rules, quick tests
# make coverage           the lines of logging/ and of recovery that tests run; scripts/setup.sh --dev installs the
#                         tools of both
# make clean
#
# CXX=clang++-14 works. Objects lie under build/VARIANT/; what depends on config.h or on a variable of this command
# line is rebuilt when it changes, nothing else is.

.DEFAULT_GOAL := rundb
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash

ifeq ($(origin CXX),default)
CXX := g++
endif
SANITIZE ?=
PYTHON ?= python3
TESTS ?= tests

# ---- Flags -----------------------------------------------------------------------------------------------

# release, thread, address; simulation, mutants, lines and coverage: what the targets torture, mutant_tests,
# line_transfers and coverage are made of (below)
VARIANT := $(if $(SANITIZE),$(SANITIZE),release)
# Objects in BUILD, programs for tests in OUT.
BUILD := build/$(VARIANT)
OUT := $(if $(filter release,$(VARIANT)),build,$(BUILD))

CXXFLAGS_BASE := -std=c++20 -O2 -g1 -march=x86-64-v2 -pthread -Wall -Wextra -Werror
LIBRARIES = -lboost_program_options -lfmt -lisal -luring -lpmem -lnuma
ALLOCATOR := jemalloc
INCLUDES := -I.
LINES := tests/instruments/line_transfers
ifeq ($(SANITIZE),)
CXXFLAGS_VARIANT := -DNDEBUG
LDFLAGS_VARIANT := -Wl,--push-state,--no-as-needed -ljemalloc -Wl,--pop-state
else ifeq ($(VARIANT),simulation)
# The seam's headers come before the product's of the same names.
INCLUDES := -Itests/simulation/seam -I$(BUILD)/src -I.
CXXFLAGS_VARIANT := -Wno-error
LDFLAGS_VARIANT := -Wl,--push-state,--no-as-needed -ljemalloc -Wl,--pop-state
else ifeq ($(VARIANT),mutants)
INCLUDES := -I$(BUILD)/src -I.
CXXFLAGS_VARIANT := -DNDEBUG -Wno-error
LDFLAGS_VARIANT := -Wl,--push-state,--no-as-needed -ljemalloc -Wl,--pop-state
else ifeq ($(VARIANT),lines)
# ThreadSanitizer's calls before each access, and an own runtime. Its headers come before the product's.
INCLUDES := -I$(LINES)/seam -I.
CXXFLAGS_VARIANT := -DNDEBUG -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -Wno-tsan
wrapped := memcpy memmove memset memcmp pwritev2 fdatasync io_uring_submit
LDFLAGS_VARIANT := $(wrapped:%=-Wl,--wrap=%) -Wl,--push-state,--no-as-needed -ljemalloc -Wl,--pop-state
else ifeq ($(SANITIZE),thread)
CXXFLAGS_VARIANT := -fsanitize=thread -fno-omit-frame-pointer
LDFLAGS_VARIANT := -fsanitize=thread
ALLOCATOR := sanitizer
else ifeq ($(SANITIZE),address)
CXXFLAGS_VARIANT := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_VARIANT := -fsanitize=address,undefined
ALLOCATOR := sanitizer
else ifeq ($(VARIANT),coverage)
CXXFLAGS_VARIANT := -O0 -g0 --coverage -fprofile-update=atomic
LDFLAGS_VARIANT := --coverage
ALLOCATOR := system
else
$(error SANITIZE is thread or address, not '$(SANITIZE)')
endif
# -Wno-tsan: GCC says that its thread sanitizer does not model fences; ours are paired with atomics that it does.
ifeq ($(SANITIZE)$(findstring clang,$(CXX)),thread)
CXXFLAGS_VARIANT += -Wno-tsan
endif
# Sanitizers, simulation and tests are compiled oftener than they run. At -O1 GCC 12 warns of std::string's own code.
CXXFLAGS_FAST := -O1 -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
ifneq ($(findstring clang,$(CXX)),)
CXXFLAGS_FAST := -O1
endif
ifneq ($(filter simulation thread address,$(VARIANT)),)
CXXFLAGS_VARIANT += $(CXXFLAGS_FAST)
endif
# Of the tests. clang takes twice as long for them at -O1 as at -O0 under AddressSanitizer; g++ does not.
CXXFLAGS_TEST := $(if $(filter address,$(VARIANT)),-O0,$(CXXFLAGS_FAST))
CXXFLAGS_ALL = $(INCLUDES) $(CXXFLAGS_BASE) $(CXXFLAGS_VARIANT) $(CXXFLAGS)
LINK = $(CXX) -pthread $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -Wl,--as-needed $(LIBRARIES) $(LDFLAGS_VARIANT)

# Switches of config.h that this command line sets: -DNAME=value for the files that read config.h.
SWITCHES := $(shell sed -n 's/^\#ifndef *\([A-Z_0-9]*\).*/\1/p' config.h)
OVERRIDES := $(strip $(foreach s,$(SWITCHES),$(if $(filter command line,$(origin $(s))),'-D$(s)=$($(s))')))
KNOWN_VARIABLES := CXX PYTHON FUZZ_CXX CXXFLAGS LDFLAGS SANITIZE PAIRS LOCK_TABLES TESTS CHECK_TOOLS $(SWITCHES)
$(foreach v,$(MAKEOVERRIDES),$(if $(findstring =,$(v)),$(if $(filter $(firstword $(subst =, ,$(v))),$(KNOWN_VARIABLES)),,\
  $(warning $(v) has no effect: config.h has no such switch))))

# ---- Sources ---------------------------------------------------------------------------------------------

MAIN_SOURCES := system/main.cpp system/pairs/pair.cpp system/runs/log_dump.cpp
LIBRARY_FOLDERS := base storage concurrency_control logging multi_master \
  $(if $(filter mutants,$(VARIANT)),system/command_line system/reference system/runs system/transaction/ack_file.cpp,\
  benchmarks/ycsb benchmarks/tpcc benchmarks/test benchmarks/sms benchmarks/sysbench \
  system)
LIBRARY_SOURCES := $(filter-out $(MAIN_SOURCES),$(sort \
  $(shell find $(LIBRARY_FOLDERS) -name '*.cpp' ! -name '*_test.cpp' 2>/dev/null)))
# Tests and what they share; fuzz targets have a main of their own.
LINES_SOURCES := $(filter-out %_test.cpp,$(wildcard $(LINES)/*.cpp))
TEST_SOURCES := $(filter-out tests/fuzz/% tests/simulation/% tests/kill_points/% $(LIBRARY_SOURCES) \
  $(filter-out $(LINES)/coherence.cpp,$(LINES_SOURCES)) \
  $(if $(filter mutants,$(VARIANT)),,tests/mutants/%) \
  $(if $(filter simulation,$(VARIANT)),tests/logging/device/%),$(sort \
  $(shell find tests -name '*.cpp' ! -name '*_test.cpp'; find $(TESTS) -name '*_test.cpp')))
MICRO_SOURCES := $(wildcard benchmarks/micro/*.cpp)

LIBRARY_OBJECTS := $(LIBRARY_SOURCES:%.cpp=$(BUILD)/%.o) $(BUILD)/build_info.o
TEST_OBJECTS := $(TEST_SOURCES:%.cpp=$(BUILD)/%.o)
MAIN_OBJECT := $(BUILD)/system/main.o
MICRO_BINARIES := $(MICRO_SOURCES:benchmarks/micro/%.cpp=$(OUT)/micro/%)
ARCHIVE := $(BUILD)/libdbx.a

# CC_ALG:USE_LOCKTABLE:LOG_ALGORITHM:LOG_TYPE. One translation unit each. LOG_NO has no type; LOG_DATA fills its place.
# $(call controls,locks_rows,has_commands): the names of those concurrency controls in the engine's list of them.
controls = $(shell \
  sed -n 's/^ *{CcAlg::k[A-Za-z0-9]*, "\([A-Z0-9_]*\)", $(1), $(2)[,}].*/\1/p' concurrency_control/controls.h)
LOCKING := $(call controls,true,[a-z]*)
# Those that are built with their locks in a table too.
LOCK_TABLES ?= $(LOCKING)
with_tables = $(foreach c,$(1),$(c):0 $(if $(filter $(c),$(LOCK_TABLES)),$(c):1))
CONCURRENCY_CONTROLS := $(call with_tables,$(call controls,[a-z]*,true))
WITH_DATA_ONLY := $(call with_tables,$(call controls,[a-z]*,false))
LOGS := LOG_NO:LOG_DATA LOG_SERIAL:LOG_DATA LOG_SERIAL:LOG_COMMAND LOG_TAURUS:LOG_DATA LOG_TAURUS:LOG_COMMAND \
        LOG_PLOVER:LOG_DATA LOG_ELEDA:LOG_DATA LOG_ELEDA:LOG_COMMAND LOG_DIFFERENTIAL:LOG_DATA
PAIRS := $(foreach c,$(CONCURRENCY_CONTROLS),$(foreach l,$(LOGS),$(c):$(l))) \
         $(foreach c,$(WITH_DATA_ONLY),$(foreach l,$(filter %:LOG_DATA,$(LOGS)),$(c):$(l))) SILO:0:LOG_BATCH:LOG_DATA \
         $(foreach c,$(call with_tables,$(LOCKING)) HEKATON:0,$(c):LOG_WBL:LOG_DATA) \
         $(foreach c,$(call controls,[a-z]*,[a-z]*),$(c):0:LOG_INSTANT:LOG_DATA)
ifeq ($(VARIANT),simulation)
# Whatever LOCK_TABLES says, those of the seeds that are kept.
KEPT_PAIRS := $(shell sed -n 's,.*--cells \([A-Z_]*\)+table/\(LOG_[A-Z]*\)/\(LOG_[A-Z]*\)/.*,\1:1:\2:\3,p' \
  tests/simulation/kept_seeds.txt)
PAIRS += $(filter-out $(PAIRS),$(KEPT_PAIRS))
endif
TIMED_PAIRS := NO_WAIT:0:LOG_TAURUS:LOG_DATA NO_WAIT:0:LOG_TAURUS:LOG_COMMAND
CHARGED_PAIRS := HEKATON:0:LOG_SERIAL:LOG_DATA HEKATON:0:LOG_WBL:LOG_DATA
PAIR_OBJECTS = $(patsubst %,$(BUILD)/pairs/%.o,$(subst :,-,$(PAIRS)))

# ---- Stamps: files that change only when what they stand for does ------------------------------------------

# $(call stamp,file,text)
stamp = $(shell mkdir -p $(dir $(1)); { [ -e $(1) ] && [ "$$(cat $(1))" = "$(2)" ]; } || echo "$(2)" > $(1))
quoted_overrides := $(subst ",\",$(OVERRIDES))
ifeq ($(filter clean,$(MAKECMDGOALS)),)
$(call stamp,$(BUILD)/flags.stamp,$(CXX) $(CXXFLAGS_ALL) $(CXXFLAGS_TEST) $(LDFLAGS) $(LIBRARIES) $(LDFLAGS_VARIANT))
$(call stamp,$(BUILD)/overrides.stamp,$(quoted_overrides))
$(call stamp,$(BUILD)/library.stamp,$(LIBRARY_SOURCES))
$(call stamp,$(BUILD)/tests.stamp,$(TEST_SOURCES) $(PAIRS) $(TIMED_PAIRS) $(CHARGED_PAIRS))
endif

# ---- Programs --------------------------------------------------------------------------------------------

.PHONY: clean check check-tools tests micro format lint include-rules

# Sanitized builds leave ./rundb alone.
ifeq ($(SANITIZE),)
RUNDB := rundb
RUNDB_ALL := rundb-all
RUNDB_TIMED := rundb-timed
RUNDB_CHARGED := rundb-charged
LOG_DUMP := log_dump
else
RUNDB := $(BUILD)/rundb
RUNDB_ALL := $(BUILD)/rundb-all
RUNDB_TIMED := $(BUILD)/rundb-timed
RUNDB_CHARGED := $(BUILD)/rundb-charged
LOG_DUMP := $(BUILD)/log_dump
.PHONY: rundb rundb-all rundb-timed rundb-charged log_dump
rundb: $(RUNDB)
rundb-all: $(RUNDB_ALL)
rundb-timed: $(RUNDB_TIMED)
rundb-charged: $(RUNDB_CHARGED)
log_dump: $(LOG_DUMP)
endif

$(RUNDB): $(MAIN_OBJECT) $(BUILD)/system/pairs/pair.o $(ARCHIVE) $(BUILD)/flags.stamp
	$(LINK)
$(RUNDB_ALL): $(MAIN_OBJECT) $(PAIR_OBJECTS) $(ARCHIVE) $(BUILD)/flags.stamp $(BUILD)/tests.stamp
	$(LINK)
$(RUNDB_TIMED): $(MAIN_OBJECT) $(patsubst %,$(BUILD)/timed/%.o,$(subst :,-,$(TIMED_PAIRS))) $(ARCHIVE) \
  $(BUILD)/flags.stamp $(BUILD)/tests.stamp
	$(LINK)
$(RUNDB_CHARGED): $(MAIN_OBJECT) $(patsubst %,$(BUILD)/charged/%.o,$(subst :,-,$(CHARGED_PAIRS))) $(ARCHIVE) \
  $(BUILD)/flags.stamp $(BUILD)/tests.stamp
	$(LINK)
$(LOG_DUMP): $(BUILD)/system/runs/log_dump.o $(ARCHIVE) $(BUILD)/flags.stamp
	$(LINK)

tests: $(OUT)/all_tests
$(OUT)/all_tests: LIBRARIES += -lgtest_main -lgmock -lgtest
$(OUT)/all_tests: $(TEST_OBJECTS) $(PAIR_OBJECTS) $(ARCHIVE) $(BUILD)/flags.stamp $(BUILD)/tests.stamp
	$(LINK)

# Threads as fibres: every source again, with the seam of tests/simulation.
torture:
	+@$(MAKE) --no-print-directory SANITIZE=simulation build/simulation/torture
.PHONY: torture
FAULTY_FILES := $(addprefix tests/logging/device/,faulty_file_system.cpp faulty_images.cpp faulty_memory.cpp \
  faulty_page_files.cpp)
CLUSTER_SOURCES := $(wildcard tests/simulation/cluster/*.cpp tests/multi_master/reference/*.cpp)
SIMULATION_SOURCES := $(wildcard tests/simulation/*.cpp) $(CLUSTER_SOURCES) $(FAULTY_FILES) tests/mutants/names.cpp
build/simulation/torture: LIBRARIES += -lboost_context
build/simulation/torture: $(SIMULATION_SOURCES:%.cpp=$(BUILD)/%.o) $(PAIR_OBJECTS) \
  $(LIBRARY_OBJECTS) $(BUILD)/flags.stamp $(BUILD)/tests.stamp
	$(LINK)

# The cluster's parts with threads as fibres: tests/simulation/multi_master, with processes that are killed.
sim_tests:
	+@$(MAKE) --no-print-directory SANITIZE=simulation PAIRS= build/simulation/sim_tests
.PHONY: sim_tests
# Two makes at once would write the same objects.
sim_tests: | $(filter torture,$(MAKECMDGOALS))
SIM_TEST_SOURCES := $(addprefix tests/simulation/,allocation.cpp oracle.cpp oracle_history.cpp oracle_statements.cpp \
  rows.cpp scheduler.cpp sim_network.cpp) $(CLUSTER_SOURCES) $(FAULTY_FILES) $(wildcard tests/simulation/multi_master/*.cpp) \
  tests/mutants/names.cpp
build/simulation/sim_tests: LIBRARIES += -lboost_context -lgtest_main -lgmock -lgtest
build/simulation/sim_tests: $(SIM_TEST_SOURCES:%.cpp=$(BUILD)/%.o) $(BUILD)/build_info.o \
  $(filter $(addprefix $(BUILD)/,base/% storage/% logging/% multi_master/% benchmarks/%),$(LIBRARY_OBJECTS)) $(BUILD)/flags.stamp
	$(LINK)

# The same processes on virtual cores, each with a clock: what a cluster with a host for each process would do.
cluster_model:
	+@$(MAKE) --no-print-directory SANITIZE=simulation PAIRS= build/simulation/cluster_model \
	  build/simulation/cluster_model_tests
.PHONY: cluster_model
cluster_model: | $(filter torture sim_tests,$(MAKECMDGOALS))
MODEL_SOURCES := tests/simulation/allocation.cpp $(FAULTY_FILES) tests/mutants/names.cpp \
  $(filter-out %_test.cpp %_main.cpp,$(wildcard tests/simulation/model/*.cpp))
MODEL_OBJECTS = $(MODEL_SOURCES:%.cpp=$(BUILD)/%.o) $(BUILD)/build_info.o \
  $(filter $(addprefix $(BUILD)/,base/% storage/% logging/% multi_master/% benchmarks/% \
  system/transaction/ack_file.o),$(LIBRARY_OBJECTS))
build/simulation/cluster_model build/simulation/cluster_model_tests: LIBRARIES += -lboost_context
build/simulation/cluster_model_tests: LIBRARIES += -lgtest_main -lgmock -lgtest
build/simulation/cluster_model: $(BUILD)/tests/simulation/model/model_main.o $(MODEL_OBJECTS) $(BUILD)/flags.stamp
	$(LINK)
build/simulation/cluster_model_tests: $(patsubst %.cpp,$(BUILD)/%.o,$(wildcard tests/simulation/model/*_test.cpp)) \
  $(MODEL_OBJECTS) $(BUILD)/flags.stamp
	$(LINK)

# Threads as fibres on the cores of a model, which sees each access. The tool's own files have no calls in them.
line_transfers:
	+@$(MAKE) --no-print-directory SANITIZE=lines build/lines/line_transfers
.PHONY: line_transfers
LINES_OBJECTS := $(LINES_SOURCES:%.cpp=$(BUILD)/%.o)
build/lines/line_transfers: LIBRARIES += -lboost_context
build/lines/line_transfers: $(BUILD)/system/main.o $(PAIR_OBJECTS) $(LIBRARY_OBJECTS) $(LINES_OBJECTS) \
  $(BUILD)/flags.stamp $(BUILD)/tests.stamp
	$(LINK)
$(LINES_OBJECTS): private CXXFLAGS_ALL += -fno-sanitize=thread
build/lines/system/main.o: private CXXFLAGS_ALL += -Dmain=EngineMain

# On threads, as all_tests is. Every test that a mutant names is in one of these.
MUTANT_TESTS := tests/models tests/storage/btree_bounds_test.cpp tests/storage/touched_words_test.cpp \
  $(addprefix tests/storage/heap/,adoption_test.cpp gap_set_test.cpp version_heap_test.cpp) \
  $(addprefix tests/system/,pairs/rules_test.cpp replay/versioned_replay_test.cpp \
  transaction/row_copier_test.cpp transaction/worker_test.cpp \
  $(addprefix runs/,continuation_test.cpp freeze_test.cpp heap_run_test.cpp run_traces_test.cpp)) tests/logging/backup \
  $(addprefix tests/concurrency_control/,contract_test.cpp scan_test.cpp held_leaves_test.cpp tictoc_test.cpp \
  heap_locking_test.cpp heap_versions_test.cpp hekaton_test.cpp created_row_test.cpp changed_bytes_test.cpp \
  waiting_test.cpp) \
  $(addprefix tests/logging/,log_tail_test.cpp device/file_device_test.cpp \
  device/posix_file_system_test.cpp device/write_window_test.cpp lsn_vector_test.cpp \
  taurus/taurus_log_test.cpp eleda/grasshopper_test.cpp differential/backward_reader_test.cpp \
  differential/baseline_recovery_test.cpp differential/differential_log_test.cpp \
  differential/log_end_test.cpp differential/transaction_table_test.cpp lv_metadata_test.cpp \
  eleda/eleda_worker_test.cpp gaps/gap_log_test.cpp silo_r/silo_r_log_test.cpp silo_r/silo_r_recovery_test.cpp \
  replication write_behind) tests/multi_master/lock tests/multi_master/reference \
  $(addprefix tests/multi_master/master/,followed_pages_test.cpp strict_reads_test.cpp versioned_read_test.cpp) \
  $(addprefix tests/multi_master/recovery/,dead_log_test.cpp lease_test.cpp lock_process_test.cpp \
  log_recovery_test.cpp loser_table_test.cpp loser_undo_test.cpp)
mutant_tests:
	+@$(MAKE) --no-print-directory SANITIZE=mutants TESTS='$(MUTANT_TESTS)' PAIRS= tests
.PHONY: mutant_tests

# No object of the engine: it is loaded into ./rundb-all, and takes the place of libc's functions.
kill_points: build/kill_at.so
.PHONY: kill_points
build/kill_at.so: tests/kill_points/kill_at.cpp $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	$(CXX) $(CXXFLAGS_BASE) $(CXXFLAGS) -fPIC -shared -o $@ $<

micro: $(MICRO_BINARIES)
$(OUT)/micro/%: LIBRARIES += $(if $(shell grep -l '^\#include <benchmark/benchmark.h>' benchmarks/micro/$*.cpp),-lbenchmark)
$(OUT)/micro/%: $(BUILD)/benchmarks/micro/%.o $(ARCHIVE) $(BUILD)/flags.stamp
	@mkdir -p $(@D)
	$(LINK)

$(ARCHIVE): $(LIBRARY_OBJECTS) $(BUILD)/library.stamp
	@rm -f $@
	ar rcs --thin $@ $(filter %.o,$^)

# ---- Objects ---------------------------------------------------------------------------------------------

# Headers that nearly every file includes are compiled before the rest: the product's, the tests' with theirs, and
# those of all pairs.
PRELUDE := $(BUILD)/base/prelude.h
TEST_PRELUDE := $(BUILD)/tests/prelude.h
PAIR_PRELUDE := $(BUILD)/system/pairs/prelude.h
COMPILE = $(CXX) $(CXXFLAGS_ALL) -include $(PRELUDE) -MMD -MP -c -o $@
COMPILE_PAIR = $(CXX) $(CXXFLAGS_ALL) -include $(PAIR_PRELUDE) -MMD -MP -c -o $@
COMPILE_TEST = $(CXX) $(CXXFLAGS_ALL) $(CXXFLAGS_TEST) -include $(TEST_PRELUDE) -MMD -MP -c -o $@

$(PRELUDE).gch: base/prelude.h $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D) && { [ -s $(@:.gch=) ] || echo '#include "$<"' > $(@:.gch=); }
	$(CXX) $(CXXFLAGS_ALL) -x c++-header -o $@ $(@:.gch=)
$(TEST_PRELUDE).gch: tests/prelude.h base/prelude.h $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D) && { [ -s $(@:.gch=) ] || echo '#include "$<"' > $(@:.gch=); }
	$(CXX) $(CXXFLAGS_ALL) $(CXXFLAGS_TEST) -x c++-header -o $@ $(@:.gch=)
$(PAIR_PRELUDE).gch: system/pairs/prelude.h $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D) && { [ -s $(@:.gch=) ] || echo '#include "$<"' > $(@:.gch=); }
	$(CXX) $(CXXFLAGS_ALL) -MMD -MP -MF $(@:.h.gch=.d) -MT $@ -x c++-header -o $@ $(@:.gch=)

ifneq ($(filter simulation mutants,$(VARIANT)),)
# The engine's sources are a copy with faults that can be switched on; what did not change is not written anew.
GENERATE := tests/mutants/generate.py $(BUILD)/src $(if $(filter mutants,$(VARIANT)),--plain)
ifneq ($(shell $(PYTHON) $(GENERATE) && echo done),done)
$(error tests/mutants/generate.py failed)
endif
PAIR_SOURCE := $(BUILD)/src/system/pairs/pair.cpp
$(BUILD)/%.o: $(BUILD)/src/%.cpp $(PRELUDE).gch $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D)
	$(COMPILE) $<
else
PAIR_SOURCE := system/pairs/pair.cpp
endif

$(BUILD)/%.o: %.cpp $(PRELUDE).gch $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D)
	$(COMPILE) $<

$(TEST_OBJECTS): $(BUILD)/%.o: %.cpp $(TEST_PRELUDE).gch $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D)
	$(COMPILE_TEST) $<

# The files that read config.h: the compiler's dependency files tell of the file, the stamp of the command line.
CONFIGURED_OBJECTS := $(BUILD)/system/command_line/parse_options.o $(BUILD)/system/pairs/pair.o
$(CONFIGURED_OBJECTS): $(BUILD)/overrides.stamp
$(CONFIGURED_OBJECTS): CXXFLAGS_ALL += $(OVERRIDES)

# Boost's and the JSON library's templates: half the time to compile, and nothing there is hot.
$(patsubst %,$(BUILD)/system/command_line/%.o,parse_options output backup_record placement_record perf_record series_record \
    worker_times): CXXFLAGS_ALL += -O1

pair_part = $(word $(1),$(subst -, ,$*))
PAIR_DEFINITIONS = -DCC_ALG=$(call pair_part,1) -DUSE_LOCKTABLE=$(call pair_part,2) \
  -DLOG_ALGORITHM=$(call pair_part,3) -DLOG_TYPE=$(call pair_part,4)
$(BUILD)/pairs/%.o: $(PAIR_SOURCE) $(PAIR_PRELUDE).gch $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D)
	$(COMPILE_PAIR) $(PAIR_DEFINITIONS) $<
$(BUILD)/timed/%.o: $(PAIR_SOURCE) $(PAIR_PRELUDE).gch $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D)
	$(COMPILE_PAIR) $(PAIR_DEFINITIONS) -DTIME_PARTS=1 $<
$(BUILD)/charged/%.o: $(PAIR_SOURCE) $(PAIR_PRELUDE).gch $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D)
	$(COMPILE_PAIR) $(PAIR_DEFINITIONS) -DPM_READS=1 $<

# What a result says about its binary. Written anew only when it differs, so a commit recompiles this file alone.
# Under -n too, or all that depends on it would be in the plan.
GIT_COMMIT := $(shell git describe --always --abbrev=12 2>/dev/null || echo unknown)
GIT_DIRTY := $(if $(shell git status --porcelain --untracked-files=no 2>/dev/null | head -1),true,false)
$(BUILD)/build_info.cpp: FORCE
	+@mkdir -p $(@D)
	+@{ echo '#include "system/command_line/environment.h"'; \
	   echo 'namespace dbx {'; \
	   echo 'const BuildInfo kBuildInfo = {"$(GIT_COMMIT)", $(GIT_DIRTY), "$(shell $(CXX) --version | head -1)",'; \
	   echo "R\"flags($(strip $(CXXFLAGS_ALL) $(quoted_overrides)))flags\", \"$(ALLOCATOR)\"};"; \
	   echo '}  // namespace dbx'; } > $@.new
	+@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
.PHONY: FORCE
FORCE:
$(BUILD)/build_info.o: $(BUILD)/build_info.cpp $(PRELUDE).gch $(BUILD)/flags.stamp | $(BUILD)/prerequisites.ok
	$(COMPILE) $<

# A missing library is named with its package, once, instead of by the first file that fails.
PREREQUISITES := jemalloc/jemalloc.h:libjemalloc-dev boost/program_options.hpp:libboost-program-options-dev \
  fmt/format.h:libfmt-dev nlohmann/json.hpp:nlohmann-json3-dev isa-l.h:libisal-dev xxhash.h:libxxhash-dev \
  liburing.h:liburing-dev numa.h:libnuma-dev
$(BUILD)/prerequisites.ok: $(BUILD)/flags.stamp
	@command -v $(firstword $(CXX)) > /dev/null || \
	  { echo "error: no compiler $(CXX): ./run.sh installs one, or: apt-get install g++" >&2; exit 1; }
	@missing=; for pair in $(PREREQUISITES); do \
	  echo "#include <$${pair%%:*}>" | $(CXX) -std=c++20 $(CXXFLAGS) -x c++ -fsyntax-only - 2>/dev/null || missing+=" $${pair##*:}"; \
	done; \
	if [ -n "$$missing" ]; then \
	  echo "error: missing packages:$$missing; ./run.sh installs them, or: apt-get install$$missing" >&2; exit 1; \
	fi
	@touch $@

# A source that has moved since: what was compiled from it is compiled again, from where it is now.
%.cpp: ;
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

-include tests/fuzz/fuzz.mk

# ---- Checks ----------------------------------------------------------------------------------------------

# New files too, before they are committed; config.h is laid out for the scripts that rewrite it.
CHECKED_SOURCES = $(filter-out config.h config-std.h,$(wildcard \
  $(shell git ls-files --cached --others --exclude-standard '*.h' '*.cpp')))

CHECK_TOOLS := clang-format-14 clang-tidy-14
check-tools:
	@for tool in $(CHECK_TOOLS); do command -v $$tool > /dev/null || \
	  { echo "error: $$tool is missing, which make check needs: scripts/setup.sh --dev installs it" >&2; exit 1; }; done

format: | check-tools
	clang-format-14 --dry-run --Werror $(CHECKED_SOURCES)

# Each file's verdict is kept, so that only what changed is looked at again.
LINT_SOURCES := $(filter-out system/pairs/pair.cpp,$(LIBRARY_SOURCES) $(MAIN_SOURCES))
lint: | check-tools
lint: $(LINT_SOURCES:%.cpp=build/lint/%.ok)
build/lint/%.ok: %.cpp .clang-tidy | check-tools
	@mkdir -p $(@D)
	clang-tidy-14 --quiet $< -- $(CXXFLAGS_BASE) 2>/dev/null
	@$(CXX) $(CXXFLAGS_BASE) -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	@touch $@
-include $(shell find build/lint -name '*.d' 2>/dev/null)

# Includes point downward only, and the switches survive DBx1000's scripts.
include-rules:
	@for rule in tests/lint/*.py; do [ -e "$$rule" ] || continue; echo "python3 $$rule"; python3 "$$rule" || exit 1; done

QUICK_TESTS := -*Slow*
check: check-tools format include-rules lint tests
	$(OUT)/all_tests --gtest_brief=1 --gtest_filter='$(QUICK_TESTS)'

# One run of the unit tests, of the command line and of log_dump; a process that is killed leaves no counts. Every log
# under locks and under optimistic commits will do, and commands in many versions.
COVERAGE := build/coverage
COVERED_PAIRS := $(filter NO_WAIT:0:% SILO:0:% HEKATON:0:LOG_TAURUS:LOG_COMMAND,$(PAIRS))
coverage:
	@command -v gcovr > /dev/null || { echo "error: gcovr is missing: scripts/setup.sh --dev installs it" >&2; exit 1; }
	+@$(MAKE) --no-print-directory SANITIZE=coverage PAIRS='$(COVERED_PAIRS)' tests rundb-all log_dump kill_points
	@find $(COVERAGE) -name '*.gcda' -delete
	$(COVERAGE)/all_tests --gtest_brief=1 --gtest_filter='$(QUICK_TESTS)'
	DBX_BINARY=$(COVERAGE)/rundb-all DBX_LOG_DUMP=$(COVERAGE)/log_dump $(PYTHON) tests/scripts/cli_check.py
	DBX_BINARY=$(COVERAGE)/rundb-all DBX_LOG_DUMP=$(COVERAGE)/log_dump $(PYTHON) tests/scripts/heap_check.py
	DBX_BINARY=$(COVERAGE)/rundb-all DBX_LOG_DUMP=$(COVERAGE)/log_dump $(PYTHON) tests/scripts/dump_check.py
	$(PYTHON) tests/scripts/coverage_report.py $(COVERAGE)
.PHONY: coverage

clean:
	rm -rf build rundb rundb-all rundb-timed rundb-charged log_dump
