// The invariants of a tree, from the pages that the reference has: order, links, high keys, separators, and that every
// key is reached.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/multi_master/reference/page_model.h"

namespace dbx::mm::reference {

struct CheckedTree {
  std::vector<std::string> problems;
  std::map<uint64_t, ModelRow> rows;
  size_t pages = 0;
  size_t unposted = 0;  // pages of which the level above has no separator
};

CheckedTree CheckTree(const ModelPages& pages, uint32_t tree, uint64_t root);

}  // namespace dbx::mm::reference
