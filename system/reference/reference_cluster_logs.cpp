// Frames of Log Stores, and the records of a master's log.
#include <algorithm>
#include <array>
#include <cstring>

#include "system/reference/reference_cluster.h"
#include "system/reference/reference_file.h"

namespace dbx::reference {
namespace {

constexpr size_t kFrameHeader = 56, kRecordHeader = 32;
constexpr uint64_t kLogVersion = 3;

[[noreturn]] void Refuse(const std::string& what) { throw Error(ExitStatus::kCorrupt, "cluster's logs: " + what); }

std::string NameOf(uint32_t master) { return "log of master " + std::to_string(master); }

uint64_t UpTo(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint32_t SaltOfLog(uint64_t cluster, uint64_t master) {
  const std::array<uint64_t, 2> of{cluster, master};
  return Crc32c(std::as_bytes(std::span(of)));
}

// ---- Frames ----

struct Frame {
  uint64_t kind, number, synced, at, bytes, length, epoch;
};

// `salt`: nothing for that of any log.
std::optional<Frame> HeaderAt(const FileImage& file, uint64_t at, std::optional<uint32_t> salt) {
  if (at + kFrameHeader > file.bytes.size()) return std::nullopt;
  if (Load(file, at, 4) != Crc32c(file.bytes.subspan(at + 4, kFrameHeader - 4))) return std::nullopt;
  const Frame frame{Load(file, at + 12, 1), Load(file, at + 16, 8), Load(file, at + 24, 8), Load(file, at + 32, 8),
                    Load(file, at + 40, 4), Load(file, at + 44, 4), Load(file, at + 48, 4)};
  if ((salt && Load(file, at + 8, 4) != *salt) || frame.kind < 1 || frame.kind > 5) return std::nullopt;
  if (frame.bytes > (8 << 20)) return std::nullopt;
  return frame;
}

std::optional<Frame> WholeAt(const FileImage& file, uint64_t at, uint32_t salt) {
  const std::optional<Frame> frame = HeaderAt(file, at, salt);
  if (!frame || at + UpTo(kFrameHeader + frame->bytes, 8) > file.bytes.size()) return std::nullopt;
  if (Crc32c(file.bytes.subspan(at + kFrameHeader, frame->bytes)) != Load(file, at + 4, 4)) return std::nullopt;
  return frame;
}

// What one store has of a log.
struct Copy {
  bool readable = false;
  std::string why;  // not
  std::vector<std::byte> bytes;
  std::vector<uint64_t> parts;  // ends of those that are sealed
  uint64_t writer = 0;
  bool has_seal = false;
  // A seal may be at 0, where no part ends.
  std::optional<uint64_t> sealed() const {
    if (!parts.empty()) return parts.back();
    return has_seal ? std::optional<uint64_t>(0) : std::nullopt;
  }
};

void CutAt(uint64_t at, Copy& copy) {
  if (at < copy.bytes.size()) copy.bytes.resize(at);
  if (at > copy.sealed().value_or(0)) copy.parts.push_back(at);
}

// False: the bytes do not follow what is there.
bool Take(const FileImage& file, uint64_t offset, const Frame& frame, Copy& copy) {
  if (frame.kind == 3 && frame.epoch > copy.writer) CutAt(frame.at, copy);
  if (frame.kind == 5) CutAt(frame.at, copy), copy.has_seal = true;
  if (frame.kind == 2 || frame.kind == 3) copy.writer = std::max(copy.writer, frame.epoch);
  if (frame.kind != 2) return true;
  if (frame.at != copy.bytes.size() || frame.bytes > frame.length) return false;
  const Bytes body = file.bytes.subspan(offset + kFrameHeader, frame.bytes);
  copy.bytes.insert(copy.bytes.end(), body.begin(), body.end());
  copy.bytes.resize(frame.at + frame.length);
  return true;
}

// At the start of a block from `at` on, one that holds(frame).
bool HasFrame(const FileImage& file, uint64_t at, uint32_t salt, auto&& holds) {
  for (; at < file.bytes.size(); at += kBlockBytes) {
    const std::optional<Frame> frame = HeaderAt(file, at, salt);
    if (frame && holds(*frame)) return true;
  }
  return false;
}

std::optional<Frame> BeginOf(const FileImage& file, uint32_t salt) {
  const std::optional<Frame> begin = HeaderAt(file, 0, salt);
  return begin && begin->kind == 1 ? begin : std::nullopt;
}

Copy ReadCopy(std::vector<FileImage> files, uint32_t salt) {
  Copy copy;
  const auto lost = [&copy](const FileImage& file, uint64_t at, const std::string& why) {
    copy.why = file.path + "@" + std::to_string(at) + ": " + why;
    return copy;
  };
  if (!files.empty() && !HasFrame(files.back(), 0, salt, [](const Frame&) { return true; })) {
    if (HeaderAt(files.back(), 0, std::nullopt)) Bad(files.back(), 8, "of another log", ExitStatus::kMismatch);
    files.pop_back();
  }
  uint64_t number = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const FileImage& file = files[i];
    const std::optional<Frame> begin = BeginOf(file, salt);
    if (!begin) return lost(file, 0, "no beginning");
    if (begin->length != kLogVersion) Bad(file, 44, "its version is not known", ExitStatus::kMismatch);
    uint64_t end = UINT64_MAX;
    if (i + 1 < files.size()) {
      const std::optional<Frame> next = BeginOf(files[i + 1], salt);
      if (!next) return lost(files[i + 1], 0, "no beginning");
      end = next->number;
    }
    uint64_t at = 0;
    while (number < end) {
      const std::optional<Frame> frame = WholeAt(file, at, salt);
      if (frame && frame->number == number) {
        if (!Take(file, at, *frame, copy)) return lost(file, at, "bytes that do not follow");
        at += UpTo(kFrameHeader + frame->bytes, 8);
        ++number;
        continue;
      }
      const uint64_t block_end = std::min<uint64_t>(UpTo(at + 1, kBlockBytes), file.bytes.size());
      if (at % kBlockBytes == 0 || at >= file.bytes.size()) break;
      const Bytes rest = file.bytes.subspan(at, block_end - at);
      if (!std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) break;
      at = block_end;
    }
    if (end != UINT64_MAX && number < end) return lost(file, at, "its last frames are gone");
    const auto shows_more = [number](const Frame& frame) { return frame.synced > number; };
    if (end == UINT64_MAX && HasFrame(file, UpTo(at, kBlockBytes), salt, shows_more)) {
      return lost(file, at, "a frame that had been synced is gone");
    }
  }
  copy.readable = true;
  return copy;
}

// ---- Which copy counts ----

struct Chosen {
  std::vector<Copy> copies;
  size_t which = 0;
  std::optional<uint64_t> sealed;
};

Chosen Choose(const ClusterImage& image, uint32_t master) {
  Chosen chosen;
  size_t readable = 0;
  std::string why;
  for (size_t i = 0; i < image.stores.size(); ++i) {
    Copy& copy = chosen.copies.emplace_back();
    copy.why = "store " + std::to_string(i) + " is not there";
    if (image.stores[i]) copy = ReadCopy(image.stores[i]->at(master), SaltOfLog(image.cluster, master));
    readable += copy.readable;
    if (!copy.readable) why += "; " + copy.why;
    if (copy.readable) chosen.sealed = std::max(chosen.sealed, copy.sealed());
  }
  if (readable < 2) Refuse(NameOf(master) + " is lost" + why);
  bool found = false;
  for (size_t i = 0; i < chosen.copies.size(); ++i) {
    const Copy& copy = chosen.copies[i];
    if (!copy.readable || copy.sealed() != chosen.sealed) continue;
    if (!found || copy.bytes.size() > chosen.copies[chosen.which].bytes.size()) chosen.which = i;
    found = true;
  }
  // What two stores have is the same.
  const std::vector<std::byte>& bytes = chosen.copies[chosen.which].bytes;
  for (const Copy& copy : chosen.copies) {
    if (!copy.readable) continue;
    uint64_t common = std::min(copy.bytes.size(), bytes.size());
    if (copy.sealed() != chosen.sealed) common = std::min(common, chosen.sealed.value());
    const auto end = bytes.begin() + static_cast<ptrdiff_t>(common);
    const auto differs = std::mismatch(bytes.begin(), end, copy.bytes.begin()).first;
    if (differs != end) {
      Refuse(NameOf(master) + ": two stores differ at " + std::to_string(differs - bytes.begin()));
    }
  }
  return chosen;
}

// ---- Records ----

// The fields of a record's body, one after the other.
class Fields {
 public:
  Fields(Bytes bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}
  uint64_t Get(size_t size) { return LoadUint(GetBytes(size), 0, size); }
  Bytes GetBytes(size_t size) {
    if (size > bytes_.size() - at_) Refuse(where_ + ": a body ends within a field");
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }
  ClusterTxn GetTxn() {
    const auto master = static_cast<uint8_t>(Get(1));
    const auto epoch = static_cast<uint32_t>(Get(4));
    return {master, epoch, Get(8)};
  }
  bool AtEnd() const { return at_ == bytes_.size(); }
  const std::string& where() const { return where_; }

 private:
  Bytes bytes_;
  std::string where_;
  size_t at_ = 0;
};

void GetFields(Fields& from, ClusterChange& change) {
  const auto u16 = [&from] { return static_cast<uint16_t>(from.Get(2)); };
  switch (change.kind) {
    case 1:
      change.tree = static_cast<uint32_t>(from.Get(4));
      change.level = static_cast<uint8_t>(from.Get(1));
      change.right = from.Get(8);
      change.high_key = from.Get(8);
      change.cells = u16();
      change.bytes = from.GetBytes(u16());
      return;
    case 2:
      change.key = from.Get(8);
      change.writer = from.GetTxn();
      change.present = from.Get(1) == 1;
      change.prefix = u16();
      change.suffix = u16();
      change.bytes = from.GetBytes(u16());
      return;
    case 3:
      change.key = from.Get(8);
      change.writer = from.GetTxn();
      return;
    case 4:
      change.key = from.Get(8);
      return;
    case 5:
      change.key = from.Get(8);
      change.right = from.Get(8);
      return;
    case 6:
      change.left = from.Get(8);
      change.right = from.Get(8);
      change.key = from.Get(8);
      return;
    case 7:
      change.key = from.Get(8);
      change.child = from.Get(8);
      return;
    case 8:
      change.key = from.Get(8);
      change.writer = from.GetTxn();
      change.bytes = from.GetBytes(u16());
      return;
    default:
      Refuse(from.where() + ": a change of no known kind");
  }
}

void TakePages(Bytes body, uint32_t master, const std::string& where, ClusterLog& log) {
  Fields lead(body, where);
  const uint64_t count = lead.Get(4), first = lead.Get(8);
  Fields from(lead.GetBytes(lead.Get(4)), where);
  if (from.Get(1) != master || from.Get(2) != count) Refuse(where + ": not the changes that it says");
  for (uint64_t i = 0; i < count; ++i) {
    ClusterChange change;
    change.kind = static_cast<uint8_t>(from.Get(1));
    change.page = from.Get(8);
    const uint64_t time = from.Get(8);
    if (time != first + i) Refuse(where + ": a change with another time");
    change.lsn = time << 4 | master;
    change.previous = from.Get(8);
    GetFields(from, change);
    log.changes.push_back(change);
  }
  if (!from.AtEnd()) Refuse(where + ": more than its changes");
}

class RecordParser {
 public:
  RecordParser(const Copy& copy, uint32_t master, uint32_t salt, ClusterLog& log)
      : copy_(copy), master_(master), salt_(salt), log_(log) {}

  // Returns what a record up to the last LFB says had been durable.
  uint64_t Parse() {
    uint64_t at = 0;
    while (at < log_.bytes.size()) {
      const auto part = std::upper_bound(copy_.parts.begin(), copy_.parts.end(), at);
      const uint64_t part_end = part == copy_.parts.end() ? UINT64_MAX : *part;
      const uint64_t left = std::min<uint64_t>(log_.bytes.size(), part_end) - at;
      const std::optional<uint64_t> length = left < kRecordHeader ? std::nullopt : LengthAt(at, left);
      if (!length) {
        // Cut off by a seal, or by the log's end.
        if (part_end == UINT64_MAX || part_end > log_.bytes.size()) break;
        DropPending();
        at = part_end;
        continue;
      }
      TakeRecord(at, *length);
      at += *length;
    }
    DropPending();
    return proven_;
  }

 private:
  std::string Where(uint64_t at) const { return NameOf(master_) + "@" + std::to_string(at); }
  uint64_t LoadAt(uint64_t at, size_t size) const { return LoadUint(log_.bytes, at, size); }

  // Nothing: it is longer than what is left.
  std::optional<uint64_t> LengthAt(uint64_t at, uint64_t left) const {
    const Bytes header = Bytes(log_.bytes).subspan(at, kRecordHeader);
    if (LoadAt(at, 4) != Crc32c(header.subspan(4))) Refuse(Where(at) + ": no record's header");
    const uint64_t length = LoadAt(at + 12, 4);
    if (LoadAt(at + 8, 4) != salt_ || LoadAt(at + 16, 8) != at || LoadAt(at + 25, 1) != master_) {
      Refuse(Where(at) + ": a record of another place");
    }
    if (length < kRecordHeader || length % 8 != 0) Refuse(Where(at) + ": impossible length");
    return length > left ? std::nullopt : std::optional(length);
  }

  void TakeRecord(uint64_t at, uint64_t length) {
    const Bytes body = Bytes(log_.bytes).subspan(at + kRecordHeader, length - kRecordHeader);
    const uint64_t kind = LoadAt(at + 24, 1);
    if (kind != 3 && Crc32c(body) != LoadAt(at + 4, 4)) Refuse(Where(at) + ": a record's body is damaged");
    Fields from(body, Where(at));
    if (kind == 32) {
      const size_t before = log_.changes.size();
      TakePages(body, master_, Where(at), log_);
      for (size_t i = before; i < log_.changes.size(); ++i) CheckWriter(log_.changes[i], Where(at));
    } else if (kind == 33) {
      from.Get(8);
      const ClusterTxn txn = from.GetTxn();
      const auto outcome = static_cast<uint8_t>(from.Get(1));
      pending_ends_.emplace_back(txn, std::pair{outcome, from.Get(8)});
      if (outcome < 1 || outcome > 3) Refuse(Where(at) + ": an END without an outcome");
    } else if (kind == 34) {
      TakeLfb(from);
    } else if (kind == 4) {
      pending_proof_ = std::max(pending_proof_, from.Get(8));
    } else if (kind != 3) {
      Refuse(Where(at) + ": a record that this log does not have");
    }
  }

  // A master writes rows for its own transactions, and for none that has ended. (It may restore those of others.)
  void CheckWriter(const ClusterChange& change, const std::string& where) const {
    if (change.kind != 2 && change.kind != 8) return;
    if (std::get<0>(change.writer) != master_) Refuse(where + ": a row of another master's transaction");
    const bool is_ending =
        std::ranges::any_of(pending_ends_, [&](const auto& end) { return end.first == change.writer; });
    if (is_ending || log_.ends.contains(change.writer)) Refuse(where + ": a row of a transaction that has ended");
  }

  void TakeLfb(Fields& from) {
    if (from.Get(8) != last_lfb_) Refuse(from.where() + ": an LFB that does not follow the one before");
    std::array<uint64_t, 16> stamp;
    for (uint64_t& element : stamp) element = from.Get(8);
    last_lfb_ = stamp[master_];
    log_.stamps.push_back(stamp);
    for (const auto& [txn, end] : pending_ends_) {
      if (!log_.ends.emplace(txn, end).second) Refuse(from.where() + ": a transaction has ended twice");
    }
    pending_ends_.clear();
    covered_changes_ = log_.changes.size();
    proven_ = std::max(proven_, pending_proof_);
  }
  // What no LFB covers does not count.
  void DropPending() {
    log_.changes.resize(covered_changes_);
    pending_ends_.clear();
    pending_proof_ = 0;
  }

  const Copy& copy_;
  const uint32_t master_, salt_;
  ClusterLog& log_;
  std::vector<std::pair<ClusterTxn, std::pair<uint8_t, uint64_t>>> pending_ends_;
  size_t covered_changes_ = 0;
  uint64_t last_lfb_ = 0, proven_ = 0, pending_proof_ = 0;
};

}  // namespace

ClusterLog ReadClusterLog(const ClusterImage& image, uint32_t master) {
  Chosen chosen = Choose(image, master);
  ClusterLog log;
  log.bytes = chosen.copies[chosen.which].bytes;
  const uint64_t proven =
      RecordParser(chosen.copies[chosen.which], master, SaltOfLog(image.cluster, master), log).Parse();
  // One that is lost may have had it.
  const auto has_it = [proven](const Copy& copy) { return !copy.readable || copy.bytes.size() >= proven; };
  if (std::count_if(chosen.copies.begin(), chosen.copies.end(), has_it) < 2) {
    Refuse(NameOf(master) + " had been durable up to " + std::to_string(proven) + ", and two stores lack that");
  }
  return log;
}

}  // namespace dbx::reference
