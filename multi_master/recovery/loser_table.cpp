#include "multi_master/recovery/loser_table.h"

#include <algorithm>
#include <utility>

namespace dbx::mm {
namespace {

// A message has a limit.
void AppendPieces(const TxnName& loser, std::span<const UndoLoser::Row> rows, std::vector<UndoLoser>& to) {
  do {
    const auto piece = rows.first(std::min(rows.size(), UndoLoser::kRowsMax));
    rows = rows.subspan(piece.size());
    to.push_back({loser, rows.empty(), {piece.begin(), piece.end()}});
  } while (!rows.empty());
}

}  // namespace

void LoserTable::Add(std::vector<Loser> losers) {
  for (Loser& loser : losers) losers_[loser.name] = {std::move(loser.rows), std::nullopt};
}

std::vector<UndoLoser> LoserTable::GiveTo(MasterId master) {
  std::vector<UndoLoser> pieces;
  for (auto loser = losers_.rbegin(); loser != losers_.rend(); ++loser) {
    if (loser->second.given_to) continue;
    loser->second.given_to = master;
    AppendPieces(loser->first, loser->second.rows, pieces);
  }
  return pieces;
}

void LoserTable::OnDead(MasterId master) {
  for (auto& [name, entry] : losers_) {
    if (entry.given_to == master) entry.given_to.reset();
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
