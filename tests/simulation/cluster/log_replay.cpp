#include "tests/simulation/cluster/log_replay.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>

#include "base/crc32c.h"

namespace dbx::sim {
namespace {

using mm::reference::ModelPages;

constexpr uint8_t kPad = 4, kPages = 32, kEnd = 33, kLfb = 34;
constexpr size_t kHeaderBytes = 32;

[[noreturn]] void Fail(const std::string& what) { throw std::runtime_error(what); }
void Require(bool condition, const std::string& what) {
  if (!condition) Fail(what);
}

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> from) : from_(from) {}
  uint64_t Number(size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, Skip(bytes).data(), bytes);
    return value;
  }
  std::span<const std::byte> Skip(size_t bytes) {
    Require(bytes <= from_.size(), "a record's fields are longer than it");
    const auto skipped = from_.first(bytes);
    from_ = from_.subspan(bytes);
    return skipped;
  }
  mm::TxnName Txn() {
    mm::TxnName txn;
    txn.master = mm::MasterId(static_cast<uint8_t>(Number(1)));
    txn.epoch = mm::ClusterEpoch(static_cast<uint32_t>(Number(4)));
    txn.sequence = Number(8);
    return txn;
  }

 private:
  std::span<const std::byte> from_;
};

struct Link {
  uint64_t page, time, previous;
};
// A mini-transaction: the body that the reference replays, and the versions that it takes and leaves.
struct Mini {
  std::span<const std::byte> body;
  std::vector<Link> links;
  bool splits = false;
  size_t lfb = 0;  // of its log, with which it became durable
};

Mini ParseMini(std::span<const std::byte> record) {
  Bytes lead(record);
  const uint64_t changes = lead.Number(4);
  const uint64_t first = lead.Number(8);
  Mini mini;
  mini.body = lead.Skip(lead.Number(4));
  Bytes from(mini.body);
  const uint64_t master = from.Number(1);
  Require(from.Number(2) == changes, "a mini-transaction with another number of changes than its record says");
  for (uint64_t i = 0; i < changes; ++i) {
    const uint64_t kind = from.Number(1);
    Link link{};
    link.page = from.Number(8);
    link.time = from.Number(8) << 4 | master;
    link.previous = from.Number(8);
    Require(link.time >> 4 == first + i, "changes whose times do not follow each other");
    mini.links.push_back(link);
    mini.splits |= kind == 5 || kind == 6;
    constexpr size_t kBytesBeforeLength[] = {0, 4 + 1 + 8 + 8 + 2, 8 + 13 + 1 + 2 + 2, 8 + 13, 8, 16, 24, 16, 8 + 13};
    Require(kind >= 1 && kind <= 8, "a change of an unknown kind");
    from.Skip(kBytesBeforeLength[kind]);
    if (kind <= 2 || kind == 8) from.Skip(from.Number(2));
  }
  return mini;
}

// One log, record by record, up to its last LFB.
class Log {
 public:
  Log(uint64_t number, const StoredBytes& stored) : number_(number), stored_(stored) { Parse(); }

  std::vector<Mini> minis;
  std::vector<std::pair<mm::TxnName, LogReplay::End>> ends;
  std::vector<ReplayedLfb> lfbs;
  size_t next = 0;  // of minis, to be replayed

 private:
  void Parse() {
    uint64_t at = 0;
    for (size_t part = 0; part <= stored_.part_ends.size(); ++part) {
      const bool is_open = part == stored_.part_ends.size();
      const uint64_t end = is_open ? stored_.end : stored_.part_ends[part];
      ParsePart(at, end);
      at = end;
    }
  }

  void ParsePart(uint64_t at, uint64_t end) {
    size_t minis_durable = minis.size(), ends_durable = ends.size();
    uint64_t last_time = LastLfb();
    while (at + kHeaderBytes <= end) {
      const auto rest = std::span(stored_.bytes).subspan(at);
      Bytes header(rest.first(kHeaderBytes));
      const uint64_t header_crc = header.Number(4), body_crc = header.Number(4);
      header.Number(4);
      const uint64_t length = header.Number(4);
      // Nothing was written there; or what a seal has cut.
      if (header_crc == 0 && length == 0) break;
      Require(length >= kHeaderBytes, Where(at) + "a record without a length");
      if (at + length > end) break;
      Require(header.Number(8) == at, Where(at) + "a record of another place");
      const uint64_t kind = header.Number(1);
      const auto body = rest.subspan(kHeaderBytes, length - kHeaderBytes);
      Require(Crc32c(body) == body_crc, Where(at) + "a wrong checksum");
      at += length;
      if (kind == kPad) continue;
      TakeRecord(kind, body, at, last_time);
      if (kind != kLfb) continue;
      minis_durable = minis.size();
      ends_durable = ends.size();
    }
    minis.resize(minis_durable);
    ends.resize(ends_durable);
  }

  void TakeRecord(uint64_t kind, std::span<const std::byte> body, uint64_t at, uint64_t& last_time) {
    uint64_t first = 0, last = 0;
    if (kind == kPages) {
      minis.push_back(ParseMini(body));
      minis.back().lfb = lfbs.size();
      first = minis.back().links.front().time >> 4;
      last = minis.back().links.back().time >> 4;
    } else if (kind == kEnd) {
      Bytes from(body);
      first = last = from.Number(8);
      const mm::TxnName txn = from.Txn();
      const uint64_t outcome = from.Number(1);
      Require(outcome >= 1 && outcome <= 3, Where(at) + "an END with an unknown outcome");
      ends.emplace_back(txn, static_cast<LogReplay::End>(outcome));
    } else {
      Require(kind == kLfb, Where(at) + "a record of an unknown kind");
      Bytes from(body);
      Require(from.Number(8) == LastLfb(), Where(at) + "an LFB that does not follow the one before it");
      ReplayedLfb lfb;
      for (uint32_t i = 0; i < mm::kMastersMax; ++i) lfb.stamp.push_back(from.Number(8));
      first = last = lfb.time = lfb.stamp[number_];
      lfbs.push_back(std::move(lfb));
    }
    Require(first > last_time, Where(at) + "times of a log do not ascend");
    last_time = last;
  }

  uint64_t LastLfb() const { return lfbs.empty() ? 0 : lfbs.back().time; }
  std::string Where(uint64_t at) const {
    return "log of master " + std::to_string(number_) + " before " + std::to_string(at) + ": ";
  }

  const uint64_t number_;
  const StoredBytes& stored_;
};

// The mini-transaction was made from the versions that the pages have now.
bool Fits(const Mini& mini, const ModelPages& pages) {
  std::map<uint64_t, uint64_t> versions;
  for (const Link& link : mini.links) {
    const auto changed = versions.find(link.page);
    const auto page = pages.find(link.page);
    const uint64_t is = changed != versions.end() ? changed->second
                        : page != pages.end()     ? page->second.lsn_time << 4 | page->second.lsn_master
                                                  : 0;
    if (is != link.previous) return false;
    versions[link.page] = link.time;
  }
  return true;
}

void TakeEnds(const Log& log, LogReplay& replay) {
  for (const auto& [txn, outcome] : log.ends) {
    const auto [place, is_new] = replay.ends.try_emplace(txn, outcome);
    Require(is_new || place->second == outcome, "a transaction with two ENDs that contradict each other");
  }
}

// A flush's stamp covers the versions of other masters from which its changes were made.
void CheckCauses(const Log& log, const Mini& mini) {
  const ReplayedLfb& lfb = log.lfbs[mini.lfb];
  for (const Link& link : mini.links) {
    const uint64_t master = link.previous & 15, time = link.previous >> 4;
    Require(lfb.stamp[master] >= time, "the LFB of time " + std::to_string(lfb.time) +
                                           " does not cover the version of time " + std::to_string(time) +
                                           " of master " + std::to_string(master) + " that it builds upon");
  }
}

// What a stamp covers is durable, and stamps of a log ascend.
void CheckStamps(const std::vector<std::vector<ReplayedLfb>>& logs) {
  for (const auto& lfbs : logs) {
    for (size_t i = 0; i < lfbs.size(); ++i) {
      for (size_t master = 0; master < logs.size(); ++master) {
        const uint64_t covered = lfbs[i].stamp[master];
        const uint64_t end = logs[master].empty() ? 0 : logs[master].back().time;
        Require(covered <= end, "an LFB builds upon what is not durable");
        Require(i == 0 || covered >= lfbs[i - 1].stamp[master], "the stamps of a log do not ascend");
      }
    }
  }
}

}  // namespace

std::string WhyNotClosed(const LogReplay& replay, const mm::VsVector& applied) {
  const auto applied_of = [&](size_t log) { return applied.of(mm::MasterId(static_cast<uint8_t>(log))).value(); };
  for (size_t log = 0; log < replay.lfbs.size(); ++log) {
    if (applied_of(log) == 0) continue;
    const auto& lfbs = replay.lfbs[log];
    const auto last = std::find_if(lfbs.begin(), lfbs.end(), [&](auto& lfb) { return lfb.time == applied_of(log); });
    const std::string name = "time " + std::to_string(applied_of(log)) + " of master " + std::to_string(log);
    if (last == lfbs.end()) return name + " is no LFB's";
    for (size_t other = 0; other < replay.lfbs.size(); ++other) {
      if (other == log || last->stamp[other] <= applied_of(other)) continue;
      return "the LFB of " + name + " builds upon time " + std::to_string(last->stamp[other]) + " of master " +
             std::to_string(other) + ", which is applied up to " + std::to_string(applied_of(other));
    }
  }
  return "";
}

LogReplay ReplayLogs(const std::vector<StoredBytes>& stored, ModelPages pages) {
  LogReplay replay;
  replay.pages = std::move(pages);
  std::vector<Log> logs;
  logs.reserve(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    logs.emplace_back(i, stored[i]);
    TakeEnds(logs.back(), replay);
    replay.lfbs.push_back(logs.back().lfbs);
  }
  CheckStamps(replay.lfbs);
  for (bool moved = true; moved;) {
    moved = false;
    for (Log& log : logs) {
      for (; log.next < log.minis.size() && Fits(log.minis[log.next], replay.pages); ++log.next) {
        CheckCauses(log, log.minis[log.next]);
        mm::reference::Replay(log.minis[log.next].body, replay.pages);
        replay.splits += log.minis[log.next].splits;
        ++replay.records;
        moved = true;
      }
    }
  }
  for (size_t i = 0; i < logs.size(); ++i) {
    if (logs[i].next == logs[i].minis.size()) continue;
    const Link& link = logs[i].minis[logs[i].next].links.front();
    Fail("log of master " + std::to_string(i) + ": a change of page " + std::to_string(link.page) + " at time " +
         std::to_string(link.time >> 4) + " was made from the version of time " + std::to_string(link.previous >> 4) +
         " of master " + std::to_string(link.previous & 15) + ", which no durable log leaves");
  }
  return replay;
}

namespace {

// A store that a seal has not reached yet may have more: what lies behind the seal counts no more.
void CutAtSeal(std::vector<StoredBytes>& copies) {
  const auto sealed = std::max_element(copies.begin(), copies.end(), [](const auto& a, const auto& b) {
    return a.part_ends.size() < b.part_ends.size();
  });
  if (sealed->part_ends.empty()) return;
  Require(sealed->part_ends.size() == 1 && sealed->part_ends.front() == sealed->end, "a sealed log goes on");
  for (StoredBytes& copy : copies) copy.end = std::min(copy.end, sealed->end);
}

}  // namespace

StoredBytes WhatTwoHave(std::vector<StoredBytes> copies) {
  CutAtSeal(copies);
  std::sort(copies.begin(), copies.end(), [](const auto& a, const auto& b) { return a.end > b.end; });
  for (size_t i = 0; i + 1 < copies.size(); ++i) {
    const StoredBytes &longer = copies[i], &shorter = copies[i + 1];
    const bool same = std::memcmp(longer.bytes.data(), shorter.bytes.data(), shorter.end) == 0;
    Require(same, "two Log Stores have other bytes below " + std::to_string(shorter.end));
  }
  // A seal stands where the fence has seen to it that two have all below.
  return std::move(copies[1]);
}

}  // namespace dbx::sim
