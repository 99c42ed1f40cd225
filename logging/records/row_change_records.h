// The record of logs in which the records of each row are a chain.
#pragma once

#include "logging/records/record_type.h"

namespace dbx::records {

extern const RecordType kRowChanges;

}  // namespace dbx::records
