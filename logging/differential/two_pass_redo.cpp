#include "logging/differential/two_pass_redo.h"

#include <span>

namespace dbx {

void TwoPassRedo::Run() {
  format::RecordHeader header, ahead;
  std::span<const std::byte> body, ahead_body;
  while (reader_.Next(header, body)) {
    if (reader_.Ahead(ChangePlayer::kAhead, ahead, ahead_body)) player_.Prefetch(ahead, ahead_body);
    if (header.kind != static_cast<uint8_t>(format::RecordKind::kChange)) continue;
    const SlotChange change = player_.Decode(header, body);
    if (change.number >= point_.number) player_.Play(change);
  }
}

}  // namespace dbx
