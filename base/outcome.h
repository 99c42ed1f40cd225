// What came of one access, and of a whole stored procedure.
#pragma once

#include <cstdint>

namespace dbx {

enum class Outcome : uint8_t {
  kOk,
  kNotFound,  // no row bears the key; the miss is part of what the transaction read
  kExists,    // a row bears the key already; an insert changed nothing
  kConflict,  // the concurrency control wants the transaction aborted and run again
  kRollback,  // the procedure itself gives up; the transaction is over, without effect
};

}  // namespace dbx
