#include "multi_master/recovery/loser_table.h"

#include <algorithm>
#include <utility>

namespace dbx::mm {
namespace {

// A message has a limit.
void AppendPieces(const TxnName& loser, std::span<const UndoLoser::Row> rows, const VsVector& after,
                  std::vector<UndoLoser>& to) {
  do {
    const auto piece = rows.first(std::min(rows.size(), UndoLoser::kRowsMax));
    rows = rows.subspan(piece.size());
    to.push_back({loser, rows.empty(), {piece.begin(), piece.end()}, after});
  } while (!rows.empty());
}

}  // namespace

void LoserTable::Add(std::vector<Loser> losers, VsTime log_end) {
  for (Loser& loser : losers) {
    Entry& entry = losers_[loser.name];
    entry.rows = std::move(loser.rows);
    entry.after.RaiseTo(loser.name.master, log_end);
  }
}

std::vector<UndoLoser> LoserTable::GiveTo(MasterId master) {
  std::vector<UndoLoser> pieces;
  for (auto loser = losers_.rbegin(); loser != losers_.rend(); ++loser) {
    if (loser->second.given_to) continue;
    loser->second.given_to = master;
    AppendPieces(loser->first, loser->second.rows, loser->second.after, pieces);
  }
  return pieces;
}

void LoserTable::OnDead(MasterId master, VsTime log_end) {
  for (auto& [name, entry] : losers_) {
    if (entry.given_to != master) continue;
    entry.given_to.reset();
    entry.after.RaiseTo(master, log_end);
  }
}

bool LoserTable::OnEnded(const EndedTxns& news) {
  bool any = false;
  for (const EndedTxns::One& one : news.above) any |= losers_.erase({news.master, news.epoch, one.sequence}) > 0;
  return any && CountOf(news.master) == 0;
}

size_t LoserTable::CountOf(MasterId dead) const {
  return static_cast<size_t>(
      std::count_if(losers_.begin(), losers_.end(), [&](const auto& loser) { return loser.first.master == dead; }));
}

}  // namespace dbx::mm
