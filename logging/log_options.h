// The options with which a run creates its log scheme. One list for all schemes, filled in one place
// (system/pairs/pair_types.h): a scheme reads those that it needs, and a renamed option fails to compile on both sides.
#pragma once

#include <cstdint>
#include <memory>

#include "base/types.h"
#include "logging/central_methods.h"
#include "logging/differential_methods.h"

namespace dbx {

class EpochClock;
class FrontierFile;
struct BackupOptions;
struct HeapOptions;

// The image of a change (differential logging): the whole slot, as in the paper, or the words that changed.
enum class ChangeImage : uint8_t { kSlot, kRuns };

struct LogOptions {
  // Taurus: LV compression: records omit the LSN vector elements that the log's last anchor covers.
  bool compress = true;
  // Taurus: row metadata that is older than the durable LSN by this much may be dropped.
  uint64_t forget_delta_bytes = 0;
  // The central log: how places are reserved and tracked until they are filled, and how far apart its hopping index's
  // entries are.
  CentralMethod central_method = CentralMethod::kEleda;
  uint64_t hopping_distance_bytes = 4 << 20;
  // Schemes with stamps: those of this run are larger. 0 for a run that continues none.
  Stamp first_stamp{};
  // Schemes that commit by epochs (LogTraits::needs_epochs): the run's clock, and its frontier file.
  const EpochClock* epochs = nullptr;
  std::shared_ptr<FrontierFile> frontier{};
  // Schemes whose tables are paged (LogTraits::needs_pages): the run's backup and its checkpoints.
  std::shared_ptr<BackupOptions> backup{};
  // Schemes whose rows have versions in a persistent heap (LogTraits::version_heap).
  std::shared_ptr<const HeapOptions> heap{};
  ChangeImage change_image = ChangeImage::kSlot;
  DiffMethod diff_method = DiffMethod::kDl1p;
};

}  // namespace dbx
