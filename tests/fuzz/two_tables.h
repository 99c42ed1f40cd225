// Two empty tables, with rows of 8 and of 24 bytes.
#pragma once

#include <string>

#include "storage/database.h"

namespace dbx::fuzz {

struct TwoTables {
  TwoTables() {
    for (const uint32_t bytes : {8, 24}) {
      Schema schema;
      schema.name = "rows of " + std::to_string(bytes);
      schema.columns = {{"value", 0, bytes}};
      schema.tuple_bytes = bytes;
      schema.expected_rows = 16;
      database.CreateTable(schema);
    }
  }
  Database database{{}, 1};
};

}  // namespace dbx::fuzz
