// The cost of tracking the fills of a central log, for the result of a run. Operations that a method lacks stay 0.
#pragma once

#include <cstdint>

namespace dbx {

struct CentralCounters {
  uint64_t crawled_bytes = 0;
  uint64_t crawled_records = 0;
  uint64_t crawl_operations = 0;  // nodes read, hops passed, ranges checked in vain, entries of the heap moved
  uint64_t hopped_bytes = 0;
  uint64_t hopped_records = 0;
  uint64_t hop_operations = 0;  // ranges checked, hops passed, heads moved, entries put into the new heap and moved
  uint64_t index_checks = 0;
  uint64_t heap_operations = 0;  // entries moved
  uint64_t callbacks = 0;
};

}  // namespace dbx
