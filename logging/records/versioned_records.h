// Records for multi-version replay: commands with timestamps, and lower bounds of all snapshots (Taurus, section 4.4;
// system/replay/versioned_replay.h).
#pragma once

#include "logging/records/record_type.h"

namespace dbx::records {

extern const RecordType kVersionedCommand;
extern const RecordType kWatermark;

// Of a versioned command; nothing if its body is too short for any.
std::optional<format::Timestamps> TimestampsOf(const format::RecordHeader& header, std::span<const std::byte> body);

}  // namespace dbx::records
