// A run with a replica in another process, over TCP (logging/replication), and that process.
//
// Threads: main's.
#pragma once

#include <memory>

#include "logging/device/file_system.h"
#include "logging/replication/replica_stream.h"
#include "logging/replication/replicated_file_system.h"
#include "system/command_line/options.h"
#include "system/result.h"

namespace dbx {

class RunReplication {
 public:
  // Connects to the replica of the options. `beneath` outlives this. Throws Error (kIo).
  RunReplication(FileSystem& beneath, const Options& options);

  // Of the run.
  FileSystem& files() { return *files_; }
  // The run has ended: returns once the replica has it all. Throws Error (kIo) where a synchronous one is lost.
  ReplicationResult End();

 private:
  ReplicationResult result_;
  std::unique_ptr<ReplicaStream> stream_;
  std::unique_ptr<ReplicatedFileSystem> files_;
};

// ./rundb --replica=PORT: keeps, in the log directories of the options, a copy of the run that connects, until it ends
// or the connection is lost. Prints where it listens, and what it has in the end. False: a signal ended it before.
// Throws Error as Replica.
bool KeepReplica(const Options& options, FileSystem& files);

}  // namespace dbx
