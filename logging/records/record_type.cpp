#include "logging/records/record_type.h"

#include "logging/records/basic_records.h"
#include "logging/records/differential_records.h"
#include "logging/records/row_change_records.h"
#include "logging/records/stamped_records.h"
#include "logging/records/versioned_records.h"

namespace dbx::records {

// By RecordKind.
const RecordType* const kTypes[kKinds] = {nullptr,         &kCommand,   &kData,    &kVoid,  &kPad,
                                          &kAnchor,        &kRunEnd,    &kStamped, &kMark,  &kVersionedCommand,
                                          &kWatermark,     &kChange,    &kCommit,  &kAbort, &kCheckpointBegin,
                                          &kCheckpointEnd, &kRowChanges};

}  // namespace dbx::records
