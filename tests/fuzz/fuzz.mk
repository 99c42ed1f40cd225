# The fuzz targets, included by the Makefile. Each with the sources that it needs, under the sanitizers; libFuzzer brings
# the main.
FUZZ_CXX ?= $(firstword $(shell command -v clang++-14 clang++) clang++-14)
FUZZ_FLAGS := -std=c++20 -O1 -g1 -march=x86-64-v2 -pthread -Wall -Wextra -Werror -I. -fno-omit-frame-pointer \
  -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZ_TARGETS := $(patsubst tests/fuzz/%_fuzz.cpp,%,$(wildcard tests/fuzz/*_fuzz.cpp))
FUZZ_HEADER_SOURCES := base/check.cpp base/crc32c.cpp system/runs/file_header.cpp
FUZZ_STORAGE_SOURCES := $(wildcard base/*.cpp storage/*.cpp storage/heap/*.cpp)
FUZZ_RECOVERY_SOURCES := $(FUZZ_STORAGE_SOURCES) $(wildcard logging/serial/*.cpp) system/runs/file_header.cpp \
  logging/frontier_file.cpp logging/plover/plover_recovery.cpp logging/silo_r/silo_r_recovery.cpp \
  logging/log_reader.cpp logging/device/background_read.cpp logging/log_tail.cpp logging/record_finder.cpp \
  logging/lane_recovery.cpp logging/log_ends.cpp logging/replay_lanes.cpp $(wildcard logging/records/*.cpp) \
  logging/taurus/taurus_recovery.cpp system/reference/reference_replay.cpp system/reference/reference_run.cpp \
  system/reference/reference_stamps.cpp system/reference/reference_versions.cpp tests/logging/log_builder.cpp
FUZZ_SOURCES_file_header := $(FUZZ_HEADER_SOURCES)
FUZZ_SOURCES_recovery := $(FUZZ_RECOVERY_SOURCES)
FUZZ_SOURCES_row_chains := $(FUZZ_RECOVERY_SOURCES) system/replay/row_chains.cpp logging/record_at.cpp
FUZZ_SOURCES_lv_decompression := $(FUZZ_RECOVERY_SOURCES)
FUZZ_SOURCES_write_entries := $(FUZZ_RECOVERY_SOURCES)
FUZZ_SOURCES_ack_file := $(FUZZ_HEADER_SOURCES) system/transaction/ack_file.cpp
FUZZ_SOURCES_options := $(FUZZ_HEADER_SOURCES) base/placement.cpp base/topology.cpp \
  $(wildcard system/command_line/parse_*.cpp) \
  $(addprefix system/command_line/,environment.cpp options.cpp switches.cpp)
FUZZ_SOURCES_parse_value := $(FUZZ_HEADER_SOURCES) system/command_line/parse_value.cpp
FUZZ_RUN_FILES_SOURCES := $(FUZZ_STORAGE_SOURCES) $(wildcard system/runs/c*.cpp) system/runs/row_anchor.cpp \
  logging/frontier_file.cpp logging/backup/anchor_file.cpp logging/backup/backup_files.cpp \
  logging/device/background_read.cpp \
  $(FAULTY_FILES) logging/device/file_system.cpp logging/device/posix_file.cpp
FUZZ_SOURCES_run_files := $(FUZZ_RUN_FILES_SOURCES)
FUZZ_PAGE_SOURCES := $(FUZZ_HEADER_SOURCES) tests/multi_master/reference/page_model.cpp \
  $(addprefix multi_master/page/,page_change.cpp pages_record.cpp slotted_page.cpp)
FUZZ_SOURCES_pages_record := $(FUZZ_PAGE_SOURCES)
FUZZ_SOURCES_slotted_page := $(FUZZ_PAGE_SOURCES)
FUZZ_SOURCES_make_corpus := $(FUZZ_RECOVERY_SOURCES) $(filter multi_master/%,$(FUZZ_PAGE_SOURCES)) \
  system/runs/continuation.cpp system/runs/row_anchor.cpp logging/backup/anchor_file.cpp
FUZZ_CLUSTER_SOURCES := $(wildcard multi_master/page/*.cpp multi_master/restart/*.cpp) multi_master/store/page_versions.cpp \
  $(addprefix multi_master/log/,flush_buffer.cpp lfb_reader.cpp store_file.cpp store_log.cpp) \
  $(addprefix multi_master/,master/initial_pages.cpp network.cpp process/log_follower.cpp) \
  $(addprefix logging/,log_stream.cpp log_writer.cpp mirrored_buffer.cpp writer_signal.cpp) \
  $(addprefix logging/device/,background_read.cpp file_system.cpp posix_file.cpp) $(FAULTY_FILES) \
  $(addprefix system/reference/reference_,cluster_logs.cpp cluster_pages.cpp replay.cpp stamps.cpp versions.cpp)
FUZZ_SOURCES_restart := $(FUZZ_STORAGE_SOURCES) $(wildcard logging/differential/*.cpp logging/records/*.cpp) \
  $(addprefix logging/,lane_recovery.cpp log_ends.cpp log_reader.cpp log_tail.cpp lsn_vector.cpp record_finder.cpp \
  replay_lanes.cpp) \
  $(addprefix logging/backup/,anchor_file.cpp backup_files.cpp) system/runs/file_header.cpp \
  logging/device/background_read.cpp logging/device/file_system.cpp logging/device/posix_file.cpp $(FAULTY_FILES) \
  $(addprefix tests/logging/,log_builder.cpp differential/paged_run.cpp)
FUZZ_SOURCES_heap := $(FUZZ_RECOVERY_SOURCES) logging/gaps/gap_log.cpp \
  $(addprefix system/runs/,heap_run.cpp index_file.cpp) \
  system/reference/reference_heap.cpp logging/device/file_system.cpp logging/device/posix_file.cpp $(FAULTY_FILES)
FUZZ_SOURCES_cluster_logs := $(FUZZ_STORAGE_SOURCES) system/runs/file_header.cpp $(FUZZ_CLUSTER_SOURCES)
fuzz_objects = $(patsubst %.cpp,build/fuzz/objects/%.o,$(FUZZ_SOURCES_$(1)))
FUZZ_LINK = $(FUZZ_CXX) -pthread -o $@ $(filter %.o,$^) -Wl,--as-needed $(LIBRARIES) -fsanitize=address,undefined
ifeq ($(filter clean,$(MAKECMDGOALS)),)
$(call stamp,build/fuzz/flags.stamp,$(FUZZ_CXX) $(FUZZ_FLAGS))
endif

.PHONY: fuzz fuzz-corpus
fuzz: $(FUZZ_TARGETS:%=build/fuzz/%)
# The seeds in the repository, made anew.
fuzz-corpus: build/fuzz/make_corpus
	$< tests/fuzz/corpus

FUZZ_PRELUDE := build/fuzz/objects/base/prelude.h
$(FUZZ_PRELUDE).gch: base/prelude.h build/fuzz/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D) && { [ -s $(@:.gch=) ] || echo '#include "$<"' > $(@:.gch=); }
	$(FUZZ_CXX) $(FUZZ_FLAGS) -x c++-header -o $@ $(@:.gch=)
build/fuzz/objects/%.o: %.cpp $(FUZZ_PRELUDE).gch build/fuzz/flags.stamp | $(BUILD)/prerequisites.ok
	@mkdir -p $(@D)
	$(FUZZ_CXX) $(FUZZ_FLAGS) -include $(FUZZ_PRELUDE) -MMD -MP -c -o $@ $<
build/fuzz/make_corpus: build/fuzz/objects/tests/fuzz/make_corpus.o $(call fuzz_objects,make_corpus)
	$(FUZZ_LINK)
.SECONDEXPANSION:
$(FUZZ_TARGETS:%=build/fuzz/%): build/fuzz/%: build/fuzz/objects/tests/fuzz/%_fuzz.o $$(call fuzz_objects,$$*)
	$(FUZZ_LINK) -fsanitize=fuzzer
-include $(shell find build/fuzz -name '*.d' 2>/dev/null)
