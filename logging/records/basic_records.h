// The records of every log: transactions without stamps or timestamps, and the log's own.
#pragma once

#include "logging/records/record_type.h"

namespace dbx::records {

extern const RecordType kCommand;
extern const RecordType kData;
extern const RecordType kVoid;
extern const RecordType kPad;
extern const RecordType kAnchor;
extern const RecordType kRunEnd;

// The elements of a transaction's LSN vector that its record holds.
size_t StoredElements(const format::RecordHeader& header);
// Appends a transaction's LSN vector after LV decompression; a star marks the elements that the record itself holds.
void DescribeVector(const RecordView& record, const LsnPerLog* anchor, std::string& text);

}  // namespace dbx::records
