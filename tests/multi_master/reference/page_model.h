// The reference for pages: what a page means, from its image, and from the bodies of PAGES records. It has parsers of
// its own and shares no code with multi_master/page, so that a mistake there shows as a difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>

namespace dbx::mm::reference {

struct ModelTxn {
  uint8_t master = 0;
  uint32_t epoch = 0;
  uint64_t sequence = 0;
  bool operator==(const ModelTxn&) const = default;
};

struct ModelVersion {
  ModelTxn writer;
  bool present = false;
  std::string image;
  bool operator==(const ModelVersion&) const = default;
};

struct ModelRow {
  ModelVersion current;
  bool has_before = false;
  ModelVersion before;
  bool operator==(const ModelRow&) const = default;
};

struct ModelPage {
  uint32_t tree = 0;
  uint8_t level = 0;
  uint64_t right = 0;
  uint64_t high_key = 0;
  uint8_t lsn_master = 0;
  uint64_t lsn_time = 0;
  std::map<uint64_t, ModelRow> rows;
  std::map<uint64_t, uint64_t> children;
  bool operator==(const ModelPage&) const = default;
};

using ModelPages = std::map<uint64_t, ModelPage>;

// Of a valid page.
ModelPage ParsePage(std::span<const std::byte> image);

// Throws std::runtime_error if the body, or a change on these pages, cannot be.
void Replay(std::span<const std::byte> body, ModelPages& pages);

}  // namespace dbx::mm::reference
