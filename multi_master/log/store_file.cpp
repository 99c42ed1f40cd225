#include "multi_master/log/store_file.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "logging/format.h"

namespace dbx::mm {

using format::kBlockBytes;

uint64_t FrameBytes(uint64_t bytes) { return RoundUp(sizeof(FrameHeader) + bytes, format::kRecordAlignment); }

uint32_t HeaderCrcOf(const FrameHeader& header) {
  return Crc32c(std::as_bytes(std::span(&header, 1)).subspan(sizeof header.header_crc));
}

bool IsFrame(const FrameHeader& header) {
  return header.header_crc == HeaderCrcOf(header) && header.kind >= 1 &&
         header.kind <= static_cast<uint8_t>(StoreFrame::kLast) && header.bytes <= kFrameBytesMax;
}

bool IsFrame(const FrameHeader& header, uint32_t salt) { return IsFrame(header) && header.salt == salt; }

StoreFileEnd ReadStoreFile(std::span<const std::byte> file, uint32_t salt, uint64_t first_frame, uint64_t end_frame,
                           const std::function<void(const FoundFrame&)>& visit) {
  StoreFileEnd end{first_frame, 0, std::nullopt, false};
  while (end.next_frame < end_frame) {
    FoundFrame frame{{}, end.offset, {}};
    FrameHeader& header = frame.header;
    const uint64_t block_end = RoundUp(end.offset + 1, kBlockBytes);
    if (end.offset + sizeof header > file.size()) break;
    std::memcpy(&header, file.data() + end.offset, sizeof header);
    const bool is_whole = IsFrame(header, salt) && header.number == end.next_frame &&
                          end.offset + FrameBytes(header.bytes) <= file.size() &&
                          Crc32c(file.subspan(end.offset + sizeof header, header.bytes)) == header.bytes_crc;
    if (!is_whole) {
      // The zeros behind a batch, then the next one.
      if (end.offset % kBlockBytes != 0 &&
          AllZero(file.subspan(end.offset, std::min<uint64_t>(block_end, file.size()) - end.offset))) {
        end.offset = block_end;
        continue;
      }
      end.bad_at = end.offset;
      break;
    }
    frame.bytes = file.subspan(end.offset + sizeof header, header.bytes);
    visit(frame);
    ++end.next_frame;
    end.offset += FrameBytes(header.bytes);
  }
  const uint64_t behind = std::min<uint64_t>(end.bad_at.value_or(file.size()), file.size());
  for (uint64_t at = RoundUp(behind, kBlockBytes); at + sizeof(FrameHeader) <= file.size(); at += kBlockBytes) {
    FrameHeader header;
    std::memcpy(&header, file.data() + at, sizeof header);
    if (IsFrame(header, salt) && header.synced_frames > end.next_frame) end.bad_was_synced = true;
  }
  return end;
}

}  // namespace dbx::mm
