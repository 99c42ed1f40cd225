#include "logging/differential/change_player.h"

#include <algorithm>
#include <string>

#include "base/cache_line.h"
#include "base/error.h"
#include "storage/heap/page_space.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

ChangePlayer::ChangePlayer(const LogSource& source, const Database& database)
    : source_(source), database_(database), changed_(database.table_count()) {}

SlotChange ChangePlayer::Decode(const RecordHeader& header, std::span<const std::byte> body) const {
  const Lsn at(header.lsn);
  SlotChange change;
  if (const char* fault = DecodeChange(header, body, change)) ThrowDamaged(source_, at, fault);
  if (const char* fault = FaultOf(change, database_)) ThrowDamaged(source_, at, fault);
  const Table& table = database_.table(change.table);
  if (change.page < table.pages()->pages_max()) return change;
  throw Error(ExitStatus::kNoSpace, "no memory for page " + std::to_string(change.page) + " of table " +
                                        table.schema().name + ", which " + PlaceOf(source_, at) + " names");
}

PageSpace& ChangePlayer::MakePage(const SlotChange& change) {
  PageSpace& pages = *database_.table(change.table).pages();
  if (change.page >= pages.page_count()) pages.GrowTo(change.page + 1);
  std::vector<bool>& changed = changed_[change.table.value()];
  if (change.page >= changed.size()) changed.resize(change.page + 1);
  changed[change.page] = true;
  return pages;
}

void ChangePlayer::Play(const SlotChange& change) {
  const PageSpace& pages = MakePage(change);
  PageSpace::Latched latched(pages, change.page);
  ApplyChange(change, pages, latched);
}
void ChangePlayer::Play(const SlotChange& change, Image image) {
  const PageSpace& pages = MakePage(change);
  PageSpace::Latched latched(pages, change.page);
  PutImage(change, image, pages, latched);
}

void ChangePlayer::Prefetch(const RecordHeader& header, std::span<const std::byte> body) const {
  SlotChange change;
  if (header.kind != static_cast<uint8_t>(RecordKind::kChange)) return;
  if (DecodeChange(header, body, change) != nullptr || change.table.value() >= database_.table_count()) return;
  const PageSpace& pages = *database_.table(change.table).pages();
  if (change.page >= pages.page_count() || change.slot >= pages.rows_per_page()) return;
  Row* const row = pages.RowAt({change.page, change.slot});
  const size_t bytes =
      static_cast<size_t>(pages.TupleOf(row) - reinterpret_cast<std::byte*>(row)) + pages.tuple_bytes();
  PrefetchBytesToWrite(row, std::min(bytes, kPrefetchedBytesMax));
}

}  // namespace dbx
