#include "multi_master/lock/ends.h"

#include "base/check.h"

namespace dbx::mm {

void EndedTxns::Encode(WireWriter& to) const {
  to.Put(master);
  to.Put(epoch);
  to.Put(low);
  to.Put(low_after);
  to.Put(static_cast<uint32_t>(open.size()));
  for (const uint64_t sequence : open) to.Put(sequence);
  to.Put(static_cast<uint32_t>(above.size()));
  for (const One& one : above) {
    to.Put(one.sequence);
    to.Put(one.place.master);
    to.Put(one.place.time);
  }
}

EndedTxns EndedTxns::Decode(WireReader& from) {
  EndedTxns news;
  news.master = from.GetMaster();
  news.epoch = from.Get<ClusterEpoch>();
  news.low = from.Get<uint64_t>();
  news.low_after = from.GetVector();
  news.open.resize(from.GetCount(8));
  for (uint64_t& sequence : news.open) {
    sequence = from.Get<uint64_t>();
    if (sequence > news.low) from.Refuse();
  }
  news.above.resize(from.GetCount(17));
  for (One& one : news.above) {
    one.sequence = from.Get<uint64_t>();
    one.place.master = from.GetMaster();
    one.place.time = from.GetTime();
  }
  return news;
}

void Ends::Add(const TxnName& txn, EndPlace place) {
  Member& member = members_[{txn.master, txn.epoch}];
  member.open.erase(txn.sequence);
  member.known[txn.sequence] = place;
}

void Ends::Learn(const EndedTxns& news) {
  Member& member = members_[{news.master, news.epoch}];
  if (news.low >= member.low) {
    // An end that is known stays known, whichever message comes last.
    std::set<uint64_t> open;
    for (const uint64_t sequence : news.open) {
      if (!member.IsEnded(sequence)) open.insert(sequence);
    }
    member.open = std::move(open);
    member.low_after.RaiseTo(news.low_after);
    if (news.low > member.low) member.marks.emplace_back(news.low, member.low_after);
    member.low = news.low;
  }
  for (const EndedTxns::One& one : news.above) Add({news.master, news.epoch, one.sequence}, one.place);
}

bool Ends::IsEnded(const TxnName& txn) const {
  const auto member = members_.find({txn.master, txn.epoch});
  return member != members_.end() && member->second.IsEnded(txn.sequence);
}

bool Ends::IsSeenBy(const VsVector& tv, const TxnName& txn) const {
  const auto found = members_.find({txn.master, txn.epoch});
  if (found == members_.end()) return false;
  const Member& member = found->second;
  const auto known = member.known.find(txn.sequence);
  if (known != member.known.end()) return tv.Covers(known->second.master, known->second.time);
  return txn.sequence <= member.settled && !member.open.contains(txn.sequence);
}

void Ends::RaiseAfter(const TxnName& txn, AfterList& after) const {
  const auto found = members_.find({txn.master, txn.epoch});
  CHECK(found != members_.end());
  const Member& member = found->second;
  const auto known = member.known.find(txn.sequence);
  if (known == member.known.end()) return after.RaiseTo(member.low_after);
  after.RaiseTo(known->second.master, known->second.time);
}

void Ends::Forget(const VsVector& least_tv) {
  for (auto& [name, member] : members_) {
    for (; !member.marks.empty() && least_tv.Covers(member.marks.front().second); member.marks.pop_front()) {
      member.settled = member.marks.front().first;
    }
    member.known.RemoveIf([&, &member = member](const auto& one) {
      const auto& [sequence, place] = one;
      return sequence <= member.settled && least_tv.Covers(place.master, place.time);
    });
  }
}

size_t Ends::remembered() const {
  size_t sum = 0;
  for (const auto& [name, member] : members_) sum += member.known.size();
  return sum;
}

TxnName OwnTxns::Begin() {
  txns_[++last_] = std::nullopt;
  ++active_;
  return {master_, epoch_, last_};
}

void OwnTxns::End(const TxnName& txn, VsTime time, bool left) {
  const auto own = txns_.find(txn.sequence);
  CHECK(own != txns_.end() && !own->second);
  own->second = time;
  --active_;
  if (left) left_.push_back({txn.sequence, {master_, time}});
}

std::optional<EndedTxns> OwnTxns::TakeNews(VsTime durable, bool only_if_left) {
  const auto is_durable = [&](VsTime time) { return time.value() <= durable.value(); };
  EndedTxns news{master_, epoch_, low_, {}, {}, {}};
  std::erase_if(left_, [&](const EndedTxns::One& one) {
    if (!is_durable(one.place.time)) return false;
    news.above.push_back(one);
    return true;
  });
  if (only_if_left && news.above.empty()) return std::nullopt;
  while (!txns_.empty() && txns_.begin()->second && is_durable(*txns_.begin()->second)) {
    const auto [sequence, time] = *txns_.begin();
    low_ = sequence;
    if (time->value() > low_time_.value()) low_time_ = *time;
    txns_.pop_front();
  }
  if (news.low == low_ && news.above.empty()) return std::nullopt;
  news.low = low_;
  news.low_after.Set(master_, low_time_);
  return news;
}

}  // namespace dbx::mm
