// The results of a run or a recovery: one JSON record, and the lines that are printed from that record alone.
//
// Records are passed as text of one line, so that only output.cpp and backup_record.cpp include the JSON library. The
// schema is described where it is built, in these files; readers find `schema_version` in it. Main's thread only.
#pragma once

#include <string>

#include "system/command_line/environment.h"
#include "system/command_line/options.h"
#include "system/result.h"

namespace dbx {

std::string RunRecord(const Options& options, const RunResult& result, const Environment& environment);
std::string RecoveryRecord(const Options& options, const RecoveryResult& result, const Environment& environment);

// Everything that is printed about a record: DBx1000's lines first, then those for people.
std::string RecordText(const std::string& record);

// The part of it that -o FILE gets: the summary and the readable lines.
std::string SummaryText(const std::string& record);

// False when the TEST workload found an anomaly.
bool RecordPassed(const std::string& record);

}  // namespace dbx
