// The outcome of one access, and of a whole stored procedure.
#pragma once

#include <cstdint>

namespace dbx {

enum class Outcome : uint8_t {
  kOk,
  kNotFound,  // key not found; the miss belongs to the read set
  kExists,    // the key exists; an insert changed nothing
  kConflict,  // the concurrency control aborts the transaction; it is retried
  kRollback,  // the procedure itself rolls back; the transaction ends without effect
};

}  // namespace dbx
