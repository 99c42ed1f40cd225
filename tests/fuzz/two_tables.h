// Two empty tables, with rows of 8 bytes and of others.
#pragma once

#include <string>

#include "storage/database.h"

namespace dbx::fuzz {

inline void AddTwoTables(Database& database, uint32_t bytes_of_second) {
  for (const uint32_t bytes : {8u, bytes_of_second}) {
    Schema schema;
    schema.name = "rows of " + std::to_string(bytes);
    schema.columns = {{"value", 0, bytes}};
    schema.tuple_bytes = bytes;
    schema.expected_rows = 16;
    database.CreateTable(schema);
  }
}

struct TwoTables {
  TwoTables() { AddTwoTables(database, 24); }
  Database database{{}, 1};
};

}  // namespace dbx::fuzz
