// The files of a run's backup, of which there are two copies, `a` and `b` (differential logging, Lee, Kim, Cha, ICDE
// 2001, section 3.2): fuzzy checkpoints write to them in turns, so that one of them is complete at any time. Which one,
// the anchor tells (anchor_file.h).
//
// Page i of a table is frame i div parts of part i mod parts, and part j lies in the run's directory j, or in the j-th
// of those that the backup has for itself (BACKUP_DIRS). A frame holds the packed images of the page
// (storage/heap/page_space.h) behind a header by which it is checked when it is read: that it is whole, and that page
// of that copy of that run, and not newer than the checkpoint that the anchor names. Nothing here knows of log records
// or transactions.
//
// Threads: a BackupWriter belongs to one thread; ReadPart runs side by side for different parts or tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "logging/device/background_read.h"
#include "logging/device/block_device.h"
#include "logging/device/file_system.h"
#include "logging/format.h"

namespace dbx {

// The largest write or read of several frames; longer is one frame alone.
inline constexpr size_t kFramesBytesMax = size_t{1} << 20;

struct BackupShape {
  struct OfTable {
    uint32_t rows_per_page;
    uint32_t tuple_bytes;
  };

  uint64_t run_id = 0;
  std::vector<OfTable> tables;
  std::vector<std::string> directories;  // part i lies in directory i

  uint32_t parts() const { return static_cast<uint32_t>(directories.size()); }
  // Of the packed images of a page: as PageSpace::PageImageBytes.
  size_t ImageBytes(uint32_t table) const;
  // Of a frame, header included; whole blocks.
  size_t FrameBytes(uint32_t table) const;
  // Where the frame of a page begins in its part.
  uint64_t OffsetOf(uint32_t table, uint32_t page) const { return uint64_t{page / parts()} * FrameBytes(table); }
  std::string PathOf(uint32_t copy, uint32_t table, uint32_t part) const;
};

std::string BackupFileName(uint32_t copy, uint32_t table, uint32_t part);  // backup-a-03-00.bak

// What a part of a backup is of.
struct BackupPart {
  uint32_t copy = 0;
  uint32_t table = 0;
  uint32_t part = 0;
};
// Of a name that BackupFileName gives.
std::optional<BackupPart> ParseBackupFileName(std::string_view name);

class BackupWriter {
 public:
  static constexpr uint32_t kCopies = 2;

  // Creates the files of both copies, durably; `files` outlives this. Without `durable` nothing else is synced. Throws
  // Error: kNoSpace, kIo.
  BackupWriter(FileSystem& files, BackupShape shape, bool durable);

  // Seals and writes one frame, that of `page`, or several, also those of the pages that follow it in its part.
  // `frames` has FrameBytes(table) for each; the images are behind the space for the header already. Throws Error
  // (kNoSpace, kIo); then the file takes nothing more, until Renew.
  void Write(uint32_t copy, TableId table, uint32_t page, uint32_t number, std::span<std::byte> frames);
  // Makes all that was written to the copy durable. Throws as Write does.
  void Sync(uint32_t copy);
  // Puts new, empty files in the place of those that have failed: only of a copy that no recovery may need, all of
  // whose pages will be written again. Throws Error.
  void Renew(uint32_t copy);

  const BackupShape& shape() const { return shape_; }
  uint64_t written_bytes() const { return written_bytes_; }
  // Of the first pages of a table, all of which were written to the copy: as AnchorTable::checksum.
  uint32_t ChecksumOf(uint32_t copy, TableId table, uint32_t pages) const;

 private:
  struct File {
    std::unique_ptr<PageFile> pages;  // null: the file is to be created anew
    bool is_written = false;          // since its last sync
  };

  File& FileOf(uint32_t copy, uint32_t table, uint32_t part) {
    return files_of_[copy][size_t{table} * shape_.parts() + part];
  }
  void Create(uint32_t copy, uint32_t table, uint32_t part);
  // Calls `operation` with the file, which is given up if it fails.
  void Attempt(File& file, auto&& operation);

  FileSystem& files_;
  const BackupShape shape_;
  const bool durable_;
  std::vector<File> files_of_[kCopies];                  // by table, then by part
  std::vector<std::vector<uint32_t>> crcs_of_[kCopies];  // by table, then by page: of the frame that was written last
  uint64_t written_bytes_ = 0;
};

class BackupReader {
 public:
  // Of the copy that checkpoint `number` has written, with the page counts that its anchor has by table. Opens all
  // files; `files` outlives this. Throws Error (kIo).
  BackupReader(FileSystem& files, BackupShape shape, uint32_t copy, uint32_t number,
               std::vector<uint32_t> pages_by_table);

  uint32_t parts() const { return shape_.parts(); }
  const BackupShape& shape() const { return shape_; }

  // Calls visit(uint32_t page, const std::byte* images) for each page of this part, in ascending order. What lies in
  // the file behind the last of them is of no page. Throws Error (kCorrupt) FILE@OFFSET for a frame that is missing,
  // damaged, of another run, copy, table or page, or of a larger number; and kIo. With `read_ahead` the next pages are
  // read in the background while some are visited. Returns the part's share in the table's checksum: those of all
  // parts, combined by XOR, are that of the anchor, or a frame is an older one of its page.
  template <class Visit>
  uint32_t ReadPart(TableId table, uint32_t part, Visit&& visit, bool read_ahead = false) const {
    Frames frames(*this, table, part, read_ahead);
    while (frames.Load()) {
      for (const std::byte* images; (images = frames.Next()) != nullptr;) visit(frames.page(), images);
    }
    return frames.checksum();
  }

 private:
  // The frames of a part, read in large blocks.
  class Frames {
   public:
    Frames(const BackupReader& reader, TableId table, uint32_t part, bool read_ahead);
    // The next block. False: there are no more frames.
    bool Load();
    // The images of the block's next frame, which is page(), once it is checked; nullptr behind its last.
    const std::byte* Next();
    uint32_t page() const { return page_; }
    uint32_t checksum() const { return checksum_; }  // of those so far

   private:
    size_t BytesOfBlock(uint64_t begin) const;
    void StartReading(uint64_t begin, int block, bool ahead);
    void Check(std::span<const std::byte> frame);
    [[noreturn]] void Refuse(const char* why) const;

    const BackupReader& reader_;
    const TableId table_;
    const uint32_t part_;
    BlockDevice& device_;
    const size_t frame_bytes_;
    const uint64_t count_;      // frames of this part
    const bool read_ahead_;     // not from memory: a copy gains nothing from another thread
    uint64_t block_begin_ = 0;  // the first frame in the current block
    uint64_t block_end_ = 0;
    uint64_t next_ = 0;  // frame to be visited
    uint32_t page_ = 0;  // of the frame that was visited last
    uint32_t checksum_ = 0;
    std::vector<std::byte> blocks_[2];
    int current_ = 0;      // of these; the other one is read ahead
    BackgroundRead read_;  // behind the blocks, which it must not outlive
  };

  BlockDevice& DeviceOf(TableId table, uint32_t part) const {
    return *devices_[size_t{table.value()} * parts() + part];
  }

  const BackupShape shape_;
  const uint32_t copy_;
  const uint32_t number_;
  const std::vector<uint32_t> pages_by_table_;
  std::vector<std::unique_ptr<BlockDevice>> devices_;  // by table, then by part
};

}  // namespace dbx
