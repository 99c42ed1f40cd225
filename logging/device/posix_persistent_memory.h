// Persistent memory over libpmem: files of a DAX file system, whose lines are written back by instructions; files of a
// RAM disk as a stand-in, in the same way; and files of disks by msync.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/persistent_memory.h"

namespace dbx {

// Throws Error: kUsage where this processor lacks the instruction, kNoSpace, kIo. A file that was created is durable
// with its entry, and is removed again if that fails.
std::unique_ptr<PersistentMemory> MapPosixMemory(const std::string& path, const PersistentMapping& mapping);

// Those that this processor has, without kAuto.
std::vector<FlushInstruction> FlushInstructions();
// "CLWB".
const char* NameOf(FlushInstruction instruction);

}  // namespace dbx
