// What a disk holds of logs, read record by record wherever one stands: also behind a torn place and the frontier,
// where no recovery reads. For I8: none of it may be used again.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::sim {

struct LogsOnDisk {
  std::vector<uint64_t> names;                // of transactions, and of attempts that were given up
  uint64_t lsns_end = 0;                      // behind every record
  uint64_t highest_stamp = 0;                 // of a transaction, in schemes that stamp them
  uint32_t newest_run = 0;                    // of those with a header
  uint32_t fewest_logs = 0;                   // with a header, of the runs that are there; stripes count each
  bool lacks_frontier = false;                // a run whose scheme has one lacks it, or it cannot be read
  uint64_t newest_start = 0;                  // its start LSN
  uint64_t newest_lowest_stamp = UINT64_MAX;  // of its transactions
  uint64_t newest_life = 0;                   // of a run with a persistent heap; the stamp above is then that life's
};

LogsOnDisk ReadLogsOnDisk(const FaultyFileSystem::Image& image);

struct RecoverableNames {
  std::vector<uint64_t> names;        // ascending
  std::vector<uint64_t> ended_below;  // by worker: what committed with a lower sequence is recovered as well

  bool Has(TxnId id) const;
};

// What the reference would recover of the newest run's transactions if the image were all there is; of a run with a
// backup it restores the pages, too. Of a run with a persistent heap, what the newest record says. Throws Error as it
// does.
RecoverableNames NamesInNewestRun(const FaultyFileSystem::Image& image);

// Of the newest record of a persistent heap: by worker, also by those that its life does not have, below which numbers
// the transactions are recovered. Those of earlier lives that were lost are below these, too.
std::vector<uint64_t> EndedBelow(std::vector<uint64_t> last_sequences, uint64_t life);

// The N of DIR/run-N/NAME.
uint32_t RunOf(const std::string& path);

}  // namespace dbx::sim
