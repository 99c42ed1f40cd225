// The log of a master at three Log Stores: a recovery and the reference replay that both take it agree on it; damage to
// one store changes nothing.
//
// The input is operations, a byte each with what it takes: 0 put row or pieces (key, transaction, length, bytes), 1
// restore row (key, transaction), 2 END (transaction, outcome), 3 LFB and PAD, 4 a PAGES record whose change is raw
// (length, bytes), 5 a record of any kind with a raw body (kind, length, bytes), 6 damage to a store (store, place).
// Records get right headers and checksums.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "logging/record_builder.h"
#include "multi_master/log/flush_buffer.h"
#include "multi_master/log/store_log.h"
#include "multi_master/master/initial_pages.h"
#include "multi_master/restart/remaining_database.h"
#include "storage/digest.h"
#include "system/reference/reference_cluster.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/two_tables.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::fuzz {
namespace {

constexpr uint64_t kCluster = 5;
constexpr mm::MasterId kMaster{0};
const std::vector<std::string> kStores = {"/s0", "/s1", "/s2"};

class LogOfInput {
 public:
  explicit LogOfInput(Input input) {
    while (!input.empty()) Take(input);
  }

  // Whole blocks, the last of which may end within no record.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> whole = bytes_;
    whole.resize(RoundUp(whole.size(), format::kBlockBytes));
    return whole;
  }
  const std::vector<std::pair<uint8_t, uint32_t>>& damages() const { return damages_; }

 private:
  static mm::TxnName TxnOf(uint8_t number) { return {kMaster, mm::ClusterEpoch(1), number % 6u + 1u}; }

  void Take(Input& input) {
    switch (input.Take<uint8_t>() % 7) {
      case 0: {
        mm::PutRow put;
        put.key = input.Take<uint8_t>() % 20;
        put.writer = TxnOf(input.Take<uint8_t>());
        const auto length = input.Take<uint8_t>();
        put.middle = input.TakeBytes(length % 12);
        if (put.middle.size() < 8 && length > 200) put.prefix_bytes = static_cast<uint16_t>(8 - put.middle.size());
        put.in_pieces = length > 100 && length <= 200;
        if (put.in_pieces) put.present = true;
        return AddChange(put);
      }
      case 1: {
        const Key key = input.Take<uint8_t>() % 20;
        return AddChange(mm::RestoreRow{key, TxnOf(input.Take<uint8_t>())});
      }
      case 2: {
        const mm::TxnName txn = TxnOf(input.Take<uint8_t>());
        std::vector<std::byte> body;
        mm::WireWriter to(body);
        mm::EncodeEnd(
            {NextTime(), txn, static_cast<mm::TxnOutcome>(input.Take<uint8_t>() % 3 + 1), TxnId{txn.sequence}}, to);
        return Add(mm::kEndKind, body);
      }
      case 3:
        return AddLfb();
      case 4: {
        const std::span<const std::byte> raw = input.TakeBytes(input.Take<uint8_t>());
        return AddPages(1, {raw.begin(), raw.end()});
      }
      case 5: {
        const auto kind = static_cast<format::RecordKind>(input.Take<uint8_t>());
        const std::span<const std::byte> raw = input.TakeBytes(input.Take<uint8_t>());
        return Add(kind, {raw.begin(), raw.end()});
      }
      default:
        damages_.emplace_back(input.Take<uint8_t>() % 3, input.Take<uint16_t>());
    }
  }
  mm::VsTime NextTime() { return mm::VsTime(++time_); }
  // Of the root page of the first table.
  void AddChange(const mm::Change& what) {
    const mm::PageLsn lsn{kMaster, NextTime()};
    const mm::PageChange change{mm::PageId(1), lsn, last_, what};
    last_ = lsn;
    std::vector<std::byte> list;
    mm::WireWriter(list).PutList(mm::EncodePages(std::span(&change, 1)));
    std::vector<std::byte> body;
    mm::WireWriter to(body);
    mm::EncodePagesLead(1, lsn.time, to);
    to.PutBytes(list);
    Add(mm::kPagesKind, body);
  }
  void AddPages(uint32_t changes, const std::vector<std::byte>& raw) {
    std::vector<std::byte> body;
    mm::WireWriter to(body);
    mm::EncodePagesLead(changes, NextTime(), to);
    to.PutList(raw);
    Add(mm::kPagesKind, body);
  }
  void AddLfb() {
    mm::LfbStamp lfb{kMaster, {}, lfb_};
    lfb_ = NextTime();
    lfb.stamp.Set(kMaster, lfb_);
    const auto words = mm::EncodeLfb(lfb);
    const auto of_words = std::as_bytes(std::span(words));
    Add(mm::kLfbKind, {of_words.begin(), of_words.end()});
    uint64_t left = RoundUp(bytes_.size(), format::kBlockBytes) - bytes_.size();
    if (left == 0) return;
    if (left < sizeof(format::RecordHeader) + sizeof(format::PadBody)) left += format::kBlockBytes;
    Add(format::RecordKind::kPad, std::vector<std::byte>(left - sizeof(format::RecordHeader)));
  }
  void Add(format::RecordKind kind, const std::vector<std::byte>& body) {
    const size_t at = bytes_.size();
    const uint32_t length = AlignRecord(sizeof(format::RecordHeader) + body.size());
    bytes_.resize(at + length);
    std::copy(body.begin(), body.end(), bytes_.begin() + static_cast<ptrdiff_t>(at + sizeof(format::RecordHeader)));
    SealRecord(&bytes_[at], HeaderOf(Lsn(at), length, mm::SaltOf(kCluster, kMaster), kMaster.value(), kind));
  }

  std::vector<std::byte> bytes_;
  std::vector<std::pair<uint8_t, uint32_t>> damages_;
  uint64_t time_ = 0;
  mm::PageLsn last_;
  mm::VsTime lfb_;
};

// What is left of a log; nothing: it is refused.
struct Verdict {
  bool taken = false;
  Digest128 rows;
  uint64_t changes = 0, losers = 0;
  std::vector<uint64_t> committed;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

class Cluster {
 public:
  explicit Cluster(std::span<const std::byte> log) {
    for (const std::string& store : kStores) {
      files_.MakeDirectory(store);
      mm::StoreLog disk(files_, store, kMaster, mm::SaltOf(kCluster, kMaster));
      std::vector<mm::FrameToWrite> frames{{mm::StoreFrame::kOpen, mm::ClusterEpoch(1), {}, 0, {}}};
      // Two batches, so that the first is known to have been synced.
      const size_t half = log.size() / format::kBlockBytes / 2 * format::kBlockBytes;
      for (const auto& [from, to] : {std::pair<size_t, size_t>{0, half}, {half, log.size()}}) {
        const auto bytes = log.subspan(from, to - from);
        if (!bytes.empty()) {
          frames.push_back({mm::StoreFrame::kData,
                            mm::ClusterEpoch(1),
                            Lsn(from),
                            static_cast<uint32_t>(bytes.size()),
                            {bytes.begin(), bytes.end()}});
        }
        disk.Sync(frames);
        disk.Publish(frames);
        frames.clear();
      }
    }
    for (uint64_t key = 0; key < 16; ++key) {
      tables_.database.table(TableId(0)).LoadRow(WorkerId(0), key, std::as_bytes(std::span(&key, 1)));
    }
  }

  void Damage(uint8_t store, uint32_t place) {
    const std::string path = kStores[store] + "/log-0-0";
    const FileBytes file = files_.Map(path);
    const uint64_t at = place % file.bytes.size();
    const std::byte flipped = file.bytes[at] ^ std::byte{0x10};
    files_.Change(path, [&](SparseBytes& bytes) { bytes.Write(at, std::span(&flipped, 1)); });
  }

  Verdict Recovered() {
    Verdict verdict;
    verdict.taken = IsTaken([&] {
      const mm::InitialPages pages(tables_.database);
      std::vector<std::unique_ptr<mm::RemainingLog>> logs;
      logs.push_back(std::make_unique<mm::RemainingLog>(files_, kStores, mm::ClusterId(kCluster), kMaster));
      mm::RemainingDatabase left([&pages](mm::PageId page) { return pages.Of(page); });
      left.Replay(logs);
      TwoTables to;
      for (size_t i = 0; i < 2; ++i) {
        Table& table = to.database.table(Database::IdOf(i));
        left.ForEachRow(mm::TreeOf(table.id()), mm::RootOf(table.id()), [&](Key key, std::span<const std::byte> image) {
          if (image.size() != table.tuple_bytes()) throw Error(ExitStatus::kCorrupt, "a row of another length");
          table.LoadRow(WorkerId(0), key, image);
        });
      }
      verdict.rows = DigestOf(to.database);
      verdict.changes = left.counters().changes;
      verdict.losers = left.counters().losers;
      for (const TxnId id : left.committed()) verdict.committed.push_back(id.value);
      std::sort(verdict.committed.begin(), verdict.committed.end());
    });
    return verdict;
  }

  Verdict ByReference() {
    Verdict verdict;
    verdict.taken = IsTaken([&] {
      reference::ClusterImage image{kCluster, 1, {}};
      for (const std::string& store : kStores) {
        FileBytes bytes = files_.Map(store + "/log-0-0");
        image.stores.emplace_back().emplace(1).at(0).push_back({store, bytes.bytes, std::move(bytes.owner)});
      }
      TwoTables to;
      const reference::ClusterReplay replay = reference::ReplayCluster(image, tables_.database, to.database);
      verdict.rows = DigestOf(to.database);
      verdict.changes = replay.changes;
      verdict.losers = replay.losers;
      verdict.committed = replay.committed;
    });
    return verdict;
  }

 private:
  FaultyFileSystem files_;
  TwoTables tables_;
};

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx;
  const fuzz::LogOfInput input(fuzz::Input(data, size));
  const std::vector<std::byte> log = input.bytes();
  fuzz::Cluster cluster(log);
  const fuzz::Verdict whole = cluster.Recovered(), reference = cluster.ByReference();
  // The reference looks at more: at trees, and at the transactions that rows are of.
  if (reference.taken) fuzz::Require(!whole.taken || whole == reference, "the recovery differs from the reference");
  if (input.damages().empty()) return 0;
  cluster.Damage(input.damages().front().first, input.damages().front().second);
  fuzz::Require(cluster.Recovered() == whole, "damage to one store has changed the recovery");
  const fuzz::Verdict after = cluster.ByReference();
  fuzz::Require(after.taken == reference.taken && (!after.taken || after == reference),
                "damage to one store has changed the reference's replay");
  for (const auto& [store, place] : input.damages()) cluster.Damage(store, place);
  (void)cluster.Recovered();
  (void)cluster.ByReference();
  return 0;
}
