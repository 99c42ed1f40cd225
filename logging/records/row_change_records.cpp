#include "logging/records/row_change_records.h"

#include "logging/records/basic_records.h"

namespace dbx::records {

// Body of a transaction: [txn id][entries of row_changes.h].
const RecordType kRowChanges = {.name = "row_changes",
                                .role = RecordRole::kTransaction,
                                .leading_bytes = VectorEnd,
                                .has_row_changes = true,
                                .unpack = UnpackRows};

}  // namespace dbx::records
