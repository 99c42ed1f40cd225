// The durable frontier of a run whose transactions become durable by stamps, not by LSNs: all with a stamp up to it are
// durable in all logs, and none of them was acknowledged before the frontier itself was on stable storage.
//
// A file of blocks, one for each step of the frontier, appended one after the other: the last valid one counts, and a
// crash can tear only the one after it (a torn write). It also records how far each log was durable then, so that a log
// that ends earlier is known to be damaged.
//
// Threads: FrontierFile belongs to one thread; the main thread reads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "logging/device/block_device.h"
#include "logging/format.h"

namespace dbx {

struct DurableFrontier {
  Stamp stamp{};
  std::vector<Lsn> lsns;  // by log
  uint64_t blocks = 0;    // of the file, up to this one; each was durable before the next was written
};

class FrontierFile {
 public:
  FrontierFile(std::unique_ptr<BlockDevice> device, uint64_t run_id) : device_(std::move(device)), run_id_(run_id) {}

  // Durable on return. Throws the device's Error.
  void Append(Stamp stamp, std::span<const Lsn> lsns);

 private:
  std::unique_ptr<BlockDevice> device_;
  const uint64_t run_id_;
  uint64_t blocks_ = 0;
};

// Throws Error: kCorrupt where no block is valid, or one behind the first that is not; kMismatch for another run's.
DurableFrontier ReadFrontier(std::span<const std::byte> bytes, uint64_t run_id, const std::string& path);

}  // namespace dbx
