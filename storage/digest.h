// Digests of the contents of a database: two databases with equal digests hold the same rows.
//
// Independent of the order of insertion, of addresses, threads, versions, log metadata and absent rows: the
// 128-bit hash (XXH3) of each present row's key and tuple, summed. Taken while no transaction runs.
#pragma once

#include <cstdint>
#include <string>

#include "storage/database.h"

namespace dbx {

struct Digest128 {
  uint64_t low = 0;
  uint64_t high = 0;

  // Addition modulo 2^128: a sum, unlike an exclusive or, notices a row that is there twice.
  Digest128& operator+=(const Digest128& other);
  std::string Hex() const;  // 32 digits, the high word first
  friend bool operator==(const Digest128&, const Digest128&) = default;
};

struct TableDigest {
  Digest128 rows;
  uint64_t row_count = 0;  // present rows
  friend bool operator==(const TableDigest&, const TableDigest&) = default;
};

// `threads` threads share the work.
TableDigest DigestOf(const Table& table, uint32_t threads = 1);

// Of all tables, with their numbers and row counts, and of all (frozen) secondary indexes.
Digest128 DigestOf(const Database& database, uint32_t threads = 1);

}  // namespace dbx
