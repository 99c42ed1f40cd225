// PAGES records as bytes: EncodePages and DecodePages of page_change.h.
#include <type_traits>

#include "base/check.h"
#include "multi_master/page/page_change.h"
#include "multi_master/wire.h"

namespace dbx::mm {
namespace {

enum class Kind : uint8_t {
  kFormat = 1,
  kPutRow = 2,
  kRestoreRow = 3,
  kRemoveRow = 4,
  kSplitLeft = 5,
  kSplitRoot = 6,
  kInsertChild = 7,
  kPutPieces = 8,
};

constexpr uint64_t kMasterBits = 4;
static_assert(kMastersMax == 1 << kMasterBits && kPageTimeEnd == uint64_t{1} << (64 - kMasterBits));

constexpr Kind KindOf(const Change& what) {
  // The kinds are numbered in the order of the alternatives.
  static_assert(std::is_same_v<std::variant_alternative_t<0, Change>, FormatPage>);
  static_assert(std::is_same_v<std::variant_alternative_t<6, Change>, InsertChild>);
  const auto* put = std::get_if<PutRow>(&what);
  if (put != nullptr && put->in_pieces) return Kind::kPutPieces;
  return static_cast<Kind>(what.index() + 1);
}

template <class Writer>
void PutShort(Writer& to, std::span<const std::byte> bytes) {
  CHECK(bytes.size() <= UINT16_MAX);
  to.Put(static_cast<uint16_t>(bytes.size()));
  to.PutBytes(bytes);
}

template <class Writer>
void Put(Writer& to, const FormatPage& format) {
  to.Put(format.tree);
  to.Put(format.level);
  to.Put(format.right);
  to.Put(format.high_key);
  to.Put(format.cells_count);
  PutShort(to, format.cells);
}
template <class Writer>
void Put(Writer& to, const PutRow& put) {
  to.Put(put.key);
  to.Put(put.writer);
  if (!put.in_pieces) {
    to.Put(static_cast<uint8_t>(put.present));
    to.Put(put.prefix_bytes);
    to.Put(put.suffix_bytes);
  }
  PutShort(to, put.middle);
}
template <class Writer>
void Put(Writer& to, const RestoreRow& restore) {
  to.Put(restore.key);
  to.Put(restore.writer);
}
template <class Writer>
void Put(Writer& to, const RemoveRow& remove) {
  to.Put(remove.key);
}
template <class Writer>
void Put(Writer& to, const SplitLeft& split) {
  to.Put(split.separator);
  to.Put(split.right);
}
template <class Writer>
void Put(Writer& to, const SplitRoot& split) {
  to.Put(split.left);
  to.Put(split.right);
  to.Put(split.separator);
}
template <class Writer>
void Put(Writer& to, const InsertChild& insert) {
  to.Put(insert.separator);
  to.Put(insert.child);
}

PageId GetPage(WireReader& from) {
  const auto page = from.Get<PageId>();
  if (page == PageId()) from.Refuse();
  return page;
}

FormatPage GetFormat(WireReader& from) {
  FormatPage format;
  format.tree = from.Get<TreeId>();
  format.level = from.Get<uint8_t>();
  format.right = from.Get<PageId>();
  format.high_key = from.Get<uint64_t>();
  format.cells_count = from.Get<uint16_t>();
  format.cells = from.GetBytes(from.Get<uint16_t>());
  return format;
}

PutRow GetPut(WireReader& from) {
  PutRow put;
  put.key = from.Get<uint64_t>();
  put.writer = from.GetTxn();
  const auto present = from.Get<uint8_t>();
  if (present > 1) from.Refuse();
  put.present = present == 1;
  put.prefix_bytes = from.Get<uint16_t>();
  put.suffix_bytes = from.Get<uint16_t>();
  put.middle = from.GetBytes(from.Get<uint16_t>());
  return put;
}

PutRow GetPieces(WireReader& from) {
  PutRow put;
  put.key = from.Get<uint64_t>();
  put.writer = from.GetTxn();
  put.middle = from.GetBytes(from.Get<uint16_t>());
  put.in_pieces = true;
  if (!EndOfPieces(put.middle)) from.Refuse();
  return put;
}

Change GetChange(WireReader& from, Kind kind) {
  // Fields are read in the order of the initialisers.
  switch (kind) {
    case Kind::kFormat:
      return GetFormat(from);
    case Kind::kPutRow:
      return GetPut(from);
    case Kind::kRestoreRow:
      return RestoreRow{from.Get<uint64_t>(), from.GetTxn()};
    case Kind::kRemoveRow:
      return RemoveRow{from.Get<uint64_t>()};
    case Kind::kSplitLeft:
      return SplitLeft{from.Get<uint64_t>(), GetPage(from)};
    case Kind::kSplitRoot:
      return SplitRoot{GetPage(from), GetPage(from), from.Get<uint64_t>()};
    case Kind::kInsertChild:
      return InsertChild{from.Get<uint64_t>(), GetPage(from)};
    case Kind::kPutPieces:
      return GetPieces(from);
  }
  from.Refuse();
  return RemoveRow{};
}

PageChange GetPageChange(WireReader& from, MasterId master) {
  const auto kind = from.Get<Kind>();
  PageChange change;
  change.page = GetPage(from);
  change.lsn = {master, from.GetTime()};
  const auto previous = from.Get<uint64_t>();
  change.previous = {MasterId(static_cast<uint8_t>(previous % kMastersMax)), VsTime(previous >> kMasterBits)};
  if (previous > 0 && change.previous.time == VsTime()) from.Refuse();
  if (change.lsn.time.value() >= kPageTimeEnd || !change.previous.IsOlderThan(change.lsn)) from.Refuse();
  change.what = GetChange(from, kind);
  const auto* format = std::get_if<FormatPage>(&change.what);
  if (format != nullptr && !IsWellFormed(change.page, *format)) from.Refuse();
  return change;
}

template <class Writer>
void PutPages(Writer& to, std::span<const PageChange> changes) {
  CHECK(!changes.empty() && changes.size() <= UINT16_MAX);
  const MasterId master = changes.front().lsn.master;
  to.Put(master);
  to.Put(static_cast<uint16_t>(changes.size()));
  for (const PageChange& change : changes) {
    CHECK(change.lsn.master == master && change.lsn.time.value() < kPageTimeEnd);
    to.Put(KindOf(change.what));
    to.Put(change.page);
    to.Put(change.lsn.time);
    to.Put(change.previous.time.value() << kMasterBits | change.previous.master.value());
    std::visit([&](const auto& what) { Put(to, what); }, change.what);
  }
}

}  // namespace

size_t PagesBytes(std::span<const PageChange> changes) {
  WireCounter counter;
  PutPages(counter, changes);
  CHECK(counter.bytes().count() <= kPagesBodyBytesMax);
  return counter.bytes().count();
}

void EncodePages(std::span<const PageChange> changes, std::span<std::byte> to) {
  PlacedWriter writer(to.data());
  PutPages(writer, changes);
  CHECK(writer.bytes().end() == to.data() + to.size());
}

std::vector<std::byte> EncodePages(std::span<const PageChange> changes) {
  std::vector<std::byte> body(PagesBytes(changes));
  EncodePages(changes, body);
  return body;
}

bool DecodePages(std::span<const std::byte> body, std::vector<PageChange>& to) {
  if (body.size() > kPagesBodyBytesMax) return false;
  WireReader from(body);
  const MasterId master = from.GetMaster();
  const auto count = from.Get<uint16_t>();
  const size_t before = to.size();
  for (uint32_t i = 0; i < count && from.ok(); ++i) to.push_back(GetPageChange(from, master));
  if (count > 0 && from.AtEnd()) return true;
  to.resize(before);
  return false;
}

std::optional<std::vector<PageChange>> DecodePages(std::span<const std::byte> body) {
  std::vector<PageChange> changes;
  if (!DecodePages(body, changes)) return std::nullopt;
  return changes;
}

}  // namespace dbx::mm
