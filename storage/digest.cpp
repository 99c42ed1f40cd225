#include "storage/digest.h"

#include <array>
#include <cstdio>
#include <vector>

// The hash's code, not its library: nothing to link with.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"
#include "base/parallel.h"

namespace dbx {
namespace {

Digest128 Hash(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return Digest128{hash.low64, hash.high64};
}

// Key and tuple do not lie side by side (log metadata may be between them), so the tuple's hash is hashed
// once more together with the key.
Digest128 HashRow(const Table& table, const Row& row) {
  const Digest128 tuple = Hash(table.tuple(&row), table.tuple_bytes());
  const std::array<uint64_t, 3> words{row.key, tuple.low, tuple.high};
  return Hash(words.data(), sizeof words);
}

TableDigest DigestOfPart(const Table& table, uint32_t part, uint32_t parts) {
  TableDigest digest;
  table.ForEachRowOfPart(part, parts, [&](const Row& row) {
    // Relaxed: no transaction runs, and the start of this thread is ordered after the last one.
    if (row.control.load(std::memory_order_relaxed) & Row::kAbsent) return;
    digest.rows += HashRow(table, row);
    ++digest.row_count;
  });
  return digest;
}

}  // namespace

Digest128& Digest128::operator+=(const Digest128& other) {
  low += other.low;
  high += other.high + (low < other.low ? 1 : 0);
  return *this;
}

std::string Digest128::Hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

TableDigest DigestOf(const Table& table, uint32_t threads) {
  CHECK(threads > 0);
  std::vector<TableDigest> parts(threads);
  RunInParallel(threads, [&](uint32_t i) { parts[i] = DigestOfPart(table, i, threads); });
  TableDigest total;
  for (const TableDigest& part : parts) {
    total.rows += part.rows;
    total.row_count += part.row_count;
  }
  return total;
}

Digest128 DigestOf(const Database& database, uint32_t threads) {
  std::vector<uint64_t> words;
  for (size_t i = 0; i < database.table_count(); ++i) {
    const Table& table = database.table(Database::IdOf(i));
    const TableDigest digest = DigestOf(table, threads);
    words.insert(words.end(), {table.id().value(), digest.row_count, digest.rows.low, digest.rows.high});
  }
  for (const auto& index : database.secondary_indexes()) {
    words.insert(words.end(), {index->entry_count(), index->Digest()});
  }
  return Hash(words.data(), words.size() * sizeof(uint64_t));
}

}  // namespace dbx
