#include "multi_master/restart/remaining_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "logging/format.h"
#include "multi_master/log/flush_buffer.h"

namespace dbx::mm {
namespace {

// The reader moves what is left of it with each flush that it takes.
constexpr size_t kReadBytes = 128 << 10;

std::string NameOf(MasterId master) { return "the log of master " + std::to_string(master.value()); }

}  // namespace

// The reader is handed its bytes; what it asks for is not sent.
class RemainingLog::Silence final : public Network {
 public:
  explicit Silence(MasterId master) : master_(master) {}
  NodeId self() const override { return {Role::kMaster, master_.value()}; }
  void Start(Receiver&) override {}
  void Send(NodeId, MessageType, std::span<const std::byte>) override {}
  void Stop() override {}

 private:
  const MasterId master_;
};

RemainingLog::RemainingLog(FileSystem& files, const std::vector<std::string>& stores, ClusterId cluster,
                           MasterId master)
    : master_(master), network_(std::make_unique<Silence>(master)) {
  CHECK(stores.size() == kLogStores);
  const uint32_t salt = SaltOf(cluster.value(), master);
  size_t readable = 0;
  for (uint8_t i = 0; i < kLogStores; ++i) {
    RemainingCopy& copy = copies_[i];
    copy.directory = stores[i];
    if (files.KindOf(copy.directory) != FileSystem::Entry::kDirectory) {
      copy.lost_why = copy.directory + " is not there";
      continue;
    }
    try {
      copy.log = std::make_unique<StoreLog>(files, copy.directory, master, salt, StoreLog::Use::kRead);
      copy.state = copy.log->state();
      ++readable;
    } catch (const Error& error) {
      if (error.status() != ExitStatus::kCorrupt) throw;
      copy.lost_why = error.what();
    }
  }
  if (readable < 2) throw Error(ExitStatus::kCorrupt, NameOf(master_) + " is lost: " + Describe());
  Choose();
  LfbReaderOptions options;
  options.log = master_;
  options.salt = salt;
  reader_ = std::make_unique<LfbReader>(*network_, options);
}

RemainingLog::~RemainingLog() = default;

Lsn RemainingLog::position() const { return position_; }

std::string RemainingLog::Describe() const {
  std::string text;
  for (const RemainingCopy& copy : copies_) {
    if (copy.lost_why.empty()) continue;
    text += (text.empty() ? "" : "; ") + copy.lost_why;
  }
  return text;
}

// The newest seal ends the log for ever, even one that only one store has: two were fenced when it was decided, and all
// that had been acknowledged lies below it. Of a store that has not heard of it, what lies behind does not count.
void RemainingLog::Choose() {
  for (const RemainingCopy& copy : copies_) sealed_ = std::max(sealed_, copy.state.sealed);
  std::vector<Lsn> ends;
  for (const RemainingCopy& copy : copies_) {
    if (copy.log == nullptr) continue;
    const bool knows = copy.state.sealed == sealed_;
    ends.push_back(knows ? copy.state.end : std::min(copy.state.end, sealed_));
    if (!knows || (source_ != nullptr && copy.state.end <= end_)) continue;
    source_ = copy.log.get();
    end_ = copy.state.end;
  }
  std::sort(ends.begin(), ends.end());
  two_have_ = ends.size() == kLogStores ? ends[1] : ends.back();
}

bool RemainingLog::Feed() {
  if (fed_ >= end_) return false;
  const std::vector<std::byte> bytes = source_->Read(fed_, end_, kReadBytes);
  if (bytes.empty()) {
    throw Error(ExitStatus::kCorrupt, NameOf(master_) + "@" + std::to_string(fed_.value()) + ": bytes are missing");
  }
  LogMessage data;
  data.log = master_;
  data.at = fed_;
  data.complete = end_;
  data.part_begin = source_->PartBegin(fed_);
  data.part_end = source_->PartEnd(fed_);
  data.length = static_cast<uint32_t>(bytes.size());
  data.bytes = Trimmed(bytes);
  CHECK(reader_->OnMessage({Role::kLogStore, 0}, kLogData, EncodeLog(data)));
  fed_ += bytes.size();
  return true;
}

void RemainingLog::NoteProofs(const LfbGroup& group) {
  const Lsn first(group.end.value() - group.bytes.size());
  format::RecordHeader header;
  for (size_t at = 0; at < group.bytes.size(); at += header.length) {
    std::memcpy(&header, group.bytes.data() + at, sizeof header);
    format::PadBody pad;
    const bool is_pad = static_cast<format::RecordKind>(header.kind) == format::RecordKind::kPad;
    if (!is_pad || header.length < sizeof header + sizeof pad) continue;
    std::memcpy(&pad, group.bytes.data() + at + sizeof header, sizeof pad);
    if (Lsn(pad.durable_lsn) > proven_) proven_ = Lsn(pad.durable_lsn), proof_ = first + at;
  }
}

std::optional<LfbGroup> RemainingLog::Next() {
  for (;;) {
    std::optional<LfbGroup> group = reader_->Next(std::chrono::nanoseconds(0));
    if (group) {
      position_ = group->end;
      NoteProofs(*group);
      return group;
    }
    if (Feed()) continue;
    CheckProof();
    return std::nullopt;
  }
}

void RemainingLog::CheckProof() const {
  size_t have = 0;
  std::string lacking = Describe();
  for (const RemainingCopy& copy : copies_) {
    if (copy.log == nullptr) continue;
    if (copy.state.end >= proven_) {
      ++have;
    } else {
      lacking +=
          (lacking.empty() ? "" : "; ") + copy.directory + " has it up to " + std::to_string(copy.state.end.value());
    }
  }
  if (have >= 2) return;
  throw Error(ExitStatus::kCorrupt, NameOf(master_) + " is damaged: the record at " + std::to_string(proof_.value()) +
                                        " shows that it was durable up to " + std::to_string(proven_.value()) +
                                        ", but " + lacking);
}

}  // namespace dbx::mm
