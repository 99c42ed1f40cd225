// The result files of a run or a recovery: --json and -o. Main's thread only.
#pragma once

#include <string>

namespace dbx {

// Throws Error(kIo), naming the file, if it could not be appended to (AppendRecord) or written (WriteSummary). The
// check changes nothing: a run that fails later leaves no empty file.
void CheckAppendable(const std::string& path);
// These throw Error(kIo or kNoSpace). Then a file that was not there before is deleted again, and AppendRecord leaves
// one that was there as it was. A record is a line of its own even behind half a line.
void AppendRecord(const std::string& path, const std::string& record);
void WriteSummary(const std::string& path, const std::string& text);
// Throws the Error of an output file, or of "standard output", that could not be written.
[[noreturn]] void ThrowOutput(const std::string& name, int error);

}  // namespace dbx
