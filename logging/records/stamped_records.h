// Records with stamps that order them among all logs: GSNs (Plover) and TIDs (Silo-R).
#pragma once

#include "logging/records/record_type.h"

namespace dbx::records {

extern const RecordType kStamped;
extern const RecordType kMark;

}  // namespace dbx::records
