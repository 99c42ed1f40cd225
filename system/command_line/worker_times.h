// Where workers spend their time, in a record and in the lines printed from it, as far as that is compiled in
// (TIME_PARTS, PM_READS). Parts of output.cpp. Threads: main's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "system/result.h"

namespace dbx {

// `metrics` gets time_shares and charged_reads, null for what is not compiled in, and with TIME_PARTS a ledger's parts
// under DBx1000's names: time_man is that of the concurrency control, look-ups in indexes included, and time_abort that
// of aborted attempts.
void AddWorkerTimes(const TimeParts& nanos, const std::optional<uint64_t>& charged_reads,
                    nlohmann::ordered_json& metrics);
// A line for each that is compiled in.
std::string WorkerTimesLines(const nlohmann::ordered_json& metrics);

}  // namespace dbx
