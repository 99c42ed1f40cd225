// Copies pages of a paged database to a copy of its backup: of each page that is dirty for the copy, the images are
// taken under the page's latch into a buffer, and outside of it the buffer goes to the file. No page is written from
// where it lies: a transaction could change it meanwhile, and its checksum would be wrong.
//
// Adjacent pages of a part are written together, up to kFramesBytesMax. The parts take turns, so that their devices
// work side by side. Threads: one; transactions may change the pages meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "logging/backup/backup_files.h"
#include "logging/format.h"
#include "storage/heap/page_space.h"

namespace dbx {

static_assert(BackupWriter::kCopies == PageSpace::kCopies);

class PageScan {
 public:
  explicit PageScan(BackupWriter& backup) : backup_(backup), buffer_bytes_(kFramesBytesMax) {
    const BackupShape& shape = backup.shape();
    for (uint32_t i = 0; i < shape.tables.size(); ++i) buffer_bytes_ = std::max(buffer_bytes_, shape.FrameBytes(i));
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes_);
  }

  // The first `count` pages of a table, which checkpoint `number` reaches hereby. `before_page` is called before each
  // of them, and may throw; then the scan is over for good. Throws Error of the backup.
  void Run(TableId table, PageSpace& pages, uint32_t count, uint32_t copy, uint32_t number, auto&& before_page) {
    const uint64_t parts = backup_.shape().parts();
    frame_bytes_ = backup_.shape().FrameBytes(table.value());
    CHECK(pages.PageImageBytes() == backup_.shape().ImageBytes(table.value()));
    const uint64_t turn = buffer_bytes_ / frame_bytes_;  // pages of a part
    for (uint64_t first = 0; first < count; first += turn * parts) {
      for (uint64_t part = 0; part < parts; ++part) {
        for (uint64_t page = first + part; page < std::min<uint64_t>(first + turn * parts, count); page += parts) {
          before_page();
          Visit(table, pages, static_cast<uint32_t>(page), copy, number);
        }
        Flush(table, copy, number);
      }
    }
  }

  uint64_t pages() const { return pages_; }  // that were dirty
  // How long the latch of each dirty page was held.
  const LatencyHistogram& latches() const { return latches_; }

 private:
  void Visit(TableId table, PageSpace& pages, uint32_t page, uint32_t copy, uint32_t number) {
    std::byte* const frame = buffer_.get() + frames_ * frame_bytes_;
    if (!Take(pages, page, copy, number, frame + sizeof(format::BackupFrame))) return Flush(table, copy, number);
    if (frames_++ == 0) first_page_ = page;
    ++pages_;
  }

  // False: the copy has the page as it is.
  bool Take(PageSpace& pages, uint32_t page, uint32_t copy, uint32_t number, std::byte* images) {
    std::optional<PageSpace::Latched> latched(std::in_place, pages, page);
    const uint64_t begin = Clock::NowTicks();
    const bool is_dirty = latched->IsDirty(static_cast<int>(copy));
    latched->SetNumber(number);
    if (is_dirty) {
      pages.CopyImages(page, images);
      latched->SetClean(static_cast<int>(copy));
    }
    latched.reset();
    if (is_dirty) latches_.Record(Clock::ToNanos(Clock::NowTicks() - begin));
    return is_dirty;
  }

  void Flush(TableId table, uint32_t copy, uint32_t number) {
    const size_t frames = std::exchange(frames_, 0);
    if (frames > 0) backup_.Write(copy, table, first_page_, number, {buffer_.get(), frames * frame_bytes_});
  }

  BackupWriter& backup_;
  size_t buffer_bytes_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t frame_bytes_ = 0;  // of the table
  size_t frames_ = 0;       // in the buffer: adjacent in their part, from first_page_ on
  uint32_t first_page_ = 0;
  uint64_t pages_ = 0;
  LatencyHistogram latches_;
};

}  // namespace dbx
