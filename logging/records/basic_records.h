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
// Where that vector ends in the body, which begins with the transaction's id.
size_t VectorEnd(const format::RecordHeader& header);
// Completes a record of id, vector and rows.
void UnpackRows(TxnRecord& record, const format::RecordHeader& header, std::span<std::byte> body);
// Appends a transaction's LSN vector after LV decompression; a star marks the elements that the record itself holds.
void DescribeVector(const RecordView& record, const LsnPerLog* anchor, std::string& text);

}  // namespace dbx::records
