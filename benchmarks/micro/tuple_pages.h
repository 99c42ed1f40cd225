// Pages of rows that have a tuple and no metadata, apart from any table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/heap/checkpoint_clock.h"
#include "storage/heap/page_space.h"
#include "storage/row.h"

namespace dbx {

struct TuplePages {
  TuplePages(size_t tuple_bytes, uint32_t pages)
      : space({.row_bytes = (sizeof(Row) + tuple_bytes + 15) / 16 * 16,
               .tuple_offset = sizeof(Row),
               .tuple_bytes = tuple_bytes},
              clock) {
    space.GrowTo(pages);
  }

  CheckpointClock clock;
  PageSpace space;
};

}  // namespace dbx
