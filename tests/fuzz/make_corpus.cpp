// Writes the seed inputs of the fuzz targets: make_corpus DIRECTORY puts them into DIRECTORY/TARGET/. What is in the
// repository was made by it, and by the fuzzers: inputs that once found something stay, as found-*.
#include <filesystem>
#include <fstream>

#include "multi_master/page/page_change.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/recovery_input.h"
#include "tests/fuzz/run_files_input.h"
#include "tests/logging/log_builder.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::fuzz {
namespace {

using recovery_test::History;
using recovery_test::kRunId;

std::filesystem::path directory;

void Write(const std::string& target, const std::string& name, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(directory / target);
  std::ofstream file(directory / target / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
void Write(const std::string& target, const std::string& name, std::string_view text) {
  Write(target, name, std::as_bytes(std::span(text)));
}
std::vector<std::byte> StreamOf(std::span<const std::byte> file) {
  return {file.begin() + format::kStreamOffset, file.end()};
}

void FileHeaders() {
  LogBuilder log(kRunId, 1, 3, format::Scheme::kTaurus);
  const LogBytes whole = log.Config("WORKLOAD=YCSB\nCC_ALG=SILO\n").Bytes();
  Write("file_header", "whole", std::span(whole).first(200));
  const LogBytes serial = LogBuilder(1).Config("SEED=1\n").Bytes();
  Write("file_header", "serial", std::span(serial).first(120));
  const LogBytes damaged = FlipBit(whole, 40);
  Write("file_header", "damaged", std::span(damaged).first(100));
}

void Histories() {
  for (const uint32_t logs : {1, 2, 3}) {
    for (const bool data : {false, true}) {
      History history({.seed = 7 + logs, .logs = logs, .txns = 5 + logs, .data = data, .anchor_percent = 30});
      std::vector<std::vector<std::byte>> streams;
      for (recovery_test::LogImage& image : history.images()) {
        if (logs == 2) image.RunEnd();
        streams.push_back(StreamOf(image.bytes()));
      }
      const std::string name = std::to_string(logs) + (data ? "-data" : "-commands");
      Write("recovery", name, EncodeInput(static_cast<uint8_t>(logs - 1), streams));
      if (logs == 2) Write("recovery", name + "-small-ring", EncodeInput(1 | 2 << 2, streams));
    }
  }
  for (const uint32_t logs : {1, 2}) {
    History history({.seed = 3, .logs = logs, .txns = 6 + logs, .versions = true, .anchor_percent = 20});
    std::vector<std::vector<std::byte>> streams;
    for (const recovery_test::LogImage& image : history.images()) streams.push_back(StreamOf(image.bytes()));
    const auto shape = static_cast<uint8_t>((logs - 1) | 4 << 4);
    Write("recovery", std::to_string(logs) + "-in-many-versions", EncodeInput(shape, streams));
  }
  recovery_test::LogImage image(0, 1);
  for (const uint64_t key : {1, 2, 3})
    image.Txn(format::RecordKind::kCommand, key, 0, {}, std::array{uint64_t{1}, key});
  image.Void(2);
  image.Pad(image.end(), 3);
  image.RunEnd();
  Write("recovery", "serial", EncodeInput(3, {StreamOf(image.bytes())}));
}

// Two logs with parts of the same transactions, and marks; and the frontier of Silo-R, in two steps.
void Stamped() {
  const std::string eight(8, 'x');
  const auto streams = [&](format::Scheme scheme, uint16_t both) {
    std::vector<std::vector<std::byte>> result;
    for (const uint32_t log : {0, 1}) {
      LogBuilder built(kRunId, log, 2, scheme);
      const auto own = static_cast<uint16_t>(both == 0 ? 0 : 1 << log);
      built.Stamped(1 + log, 5 + log, own, {Put(0, 7 + log, eight)}).Mark(6, 0);
      built.Stamped(3 + (both == 0 ? log : 0), 9, both, {Delete(0, 9 + log)}).Void(40).Mark(12, 6).Pad().RunEnd();
      result.push_back(StreamOf(built.Bytes()));
    }
    return result;
  };
  Write("recovery", "plover", EncodeInput(1 | 1 << 4, streams(format::Scheme::kPlover, 3)));
  const auto frontier = std::as_bytes(std::span("\1\0\6\0\x40\0\x40\0\0\x0b\0\x50\0\x50\0", 15));
  Write("recovery", "silo-r",
        EncodeInput(1 | 2 << 4, streams(format::Scheme::kSiloR, 0), {frontier.begin(), frontier.end()}));
}

void Built() {
  LogBuilder log(kRunId, 0, 2, format::Scheme::kTaurus);
  const std::string eight(8, 'x');
  log.Data(1, {Put(0, 7, eight), Delete(0, 8)}, {0, 0}).Anchor({0, 0}).Data(2, {Put(0, 7, eight)}, {64, 0}).Void(40);
  const LogBytes file = log.Bytes();
  Write("recovery", "built", EncodeInput(1, {StreamOf(file), {}}));
  const auto writes = std::span(file).subspan(FileOffset(log.Start(0)) + 40 + 0, log.Start(1) - 40);
  Write("write_entries", "put-and-delete", writes);
  Write("write_entries", "cut-off", writes.first(20));
  Write("write_entries", "two-tables", std::as_bytes(std::span("\x09\0\0\0\0\0\0\0\x01\0\x02\0\0\0\0\0", 16)));
}

void LsnVectors() {
  Write("lv_decompression", "anchors",
        std::string_view("\x02\x05\x03\x08\x10\x00\x20\x00\x05\x03\x05\x06\x18\x00\x09", 15));
  Write("lv_decompression", "one-log", std::string_view("\x00\x01\x01\x01\x08\x40\x00\x02\x00", 9));
  Write("lv_decompression", "sixteen",
        std::string_view("\x0f\x11\x08\x01\x02\x03\x04\x05\x06\xff\xff\x10\x20\x30", 14));
}

void Text() {
  Write("options", "run", "--cc=NO_WAIT\n--log=LOG_TAURUS\n--log_type=LOG_COMMAND\n-t2\n-Ln2\n--seconds=3\n--verify");
  Write("options", "recover", "-Lr1\n--run\n7\n--log_dir\nA,B\n--verify");
  Write("options", "old", "-p4\n-G100\n-z0.9\n-s1K\n-LK1M\n-Lt5us\n-Ar0\n-n4\n-Tm0.5\n-o\nout");
  Write("options", "identity", "=CC_ALG=SILO\nUSE_LOCKTABLE=0\nLOG_ALGORITHM=LOG_TAURUS\nZIPF_THETA=0.6\n");
  Write("parse_value", "whole", "64M");
  Write("parse_value", "real", "0.25");
  Write("parse_value", "duration", "150us");
  Write("parse_value", "seconds", "1.5ms");
  Write("parse_value", "too-large", "18446744073709551616G");
}

// As system/transaction/ack_file.cpp lays it out; the target makes the checksum right and the file as long as it should
// be.
void AckFiles() {
  const auto write = [](const std::string& name, uint64_t workers, uint64_t bits, uint64_t notes,
                        std::initializer_list<uint64_t> words) {
    std::vector<uint64_t> all{kRunId, workers, bits, 0, notes};
    all.insert(all.end(), words);
    Write("ack_file", name, std::as_bytes(std::span(all)));
  };
  write("one", 1, 32768, 0, {5, 0, 1});
  write("two", 2, 32768, 4096, {~uint64_t{0}});
  write("no-bits", 1 << 20, 0, 0, {});
}

void RunFiles() {
  const auto write = [](const std::string& name, RunFile kind, std::span<const std::byte> rest) {
    std::vector<std::byte> input{static_cast<std::byte>(kind)};
    input.insert(input.end(), rest.begin(), rest.end());
    Write("run_files", name, input);
  };
  const std::vector<std::byte> frozen = EncodeFrozen(SomeFrozen()), manifest = EncodeManifest(SomeManifest()),
                               successor = EncodeSuccessor(SomeSuccessor());
  const std::vector<std::byte> anchor = EncodeAnchor(SomeAnchor());
  write("anchor", RunFile::kAnchor, std::span(anchor).first(500));
  const std::vector<std::byte> row_anchor = EncodeRowAnchor(SomeRowAnchor());
  write("row_anchor", RunFile::kRowAnchor, std::span(row_anchor).first(300));
  write("frozen", RunFile::kFrozen, std::span(frozen).first(100));
  write("manifest", RunFile::kManifest, std::span(manifest).first(120));
  write("successor", RunFile::kSuccessor, std::span(successor).first(48));
  // Parts, then a block of one row: length, kind, rows, WriteEntry, image.
  const std::string_view row(
      "\0\1\x18\0\1\1\7\0\0\0\0\0\0\0\0\0\1\0\x08\0\0\0"
      "12345678",
      30);
  write("checkpoint", RunFile::kCheckpoint, std::as_bytes(std::span(row)));
  write("empty", RunFile::kCheckpoint, {});
  write("backup", RunFile::kBackup, {});
  write("frontier", RunFile::kFrontier, std::as_bytes(std::span("\0\0\6\0\x40\0\0\x0b\0\x50\0\1\x0c\0\x60\0", 16)));
}

// Two runs with inserts, updates and deletes of some rows, and one that names a wrong record.
void RowChainStreams() {
  const auto change = [](LogBuilder& log, uint64_t txn, format::RowChangeEntry entry, const std::string& what) {
    entry.length = static_cast<uint32_t>(what.size());
    std::string body(reinterpret_cast<const char*>(&txn), sizeof txn);
    body.append(reinterpret_cast<const char*>(&entry), sizeof entry) += what;
    body.resize(RoundedUpToWords(body.size()));
    log.Raw(log.HeaderOf(format::RecordKind::kRowChanges), body);
  };
  const std::string run("\3\0\0\0\2\0\0\0xy\0\0\0\0\0\0", 16);
  std::vector<std::vector<std::byte>> streams;
  for (const uint64_t number : {0, 1}) {
    LogBuilder log(kRunId + number, 0, 1, format::Scheme::kInstant);
    change(log, 10 * number + 1, {2, 0, 0, 3, 0, 0}, run);
    change(log, 10 * number + 2, {6, 0, 1, 1, 0, 0}, std::string(24, 'z'));
    change(log, 10 * number + 3, {2, log.Start(0) + 1, 0, 3, 0, 0}, run);
    change(log, 10 * number + 4, {6, log.Start(1) + 1, 1, 2, 0, 0}, "");
    if (number == 1) log.RunEnd();
    streams.push_back(StreamOf(log.Bytes()));
  }
  const std::span first = streams[0];
  std::vector<std::byte> two{std::byte{1}, std::byte{4}};
  const auto length = static_cast<uint16_t>(first.size());
  const auto stored = std::as_bytes(std::span(&length, 1));
  two.insert(two.end(), stored.begin(), stored.end());
  for (const std::vector<std::byte>& stream : streams) two.insert(two.end(), stream.begin(), stream.end());
  Write("row_chains", "two-runs", two);
  LogBuilder log(kRunId, 0, 1, format::Scheme::kInstant);
  change(log, 1, {2, 0, 0, 3, 0, 0}, run);
  change(log, 2, {2, 0, 0, 3, 0, 0}, run);
  std::vector<std::byte> wrong{std::byte{0}, std::byte{0}};
  const std::vector<std::byte> stream = StreamOf(log.Bytes());
  wrong.insert(wrong.end(), stream.begin(), stream.end());
  Write("row_chains", "wrong-link", wrong);
}

// Histories of 250 steps under each method, as they are and with a change in their first log.
void Restarts() {
  for (const uint8_t method : {0, 1, 2}) {
    const std::vector<uint8_t> whole{static_cast<uint8_t>(3 + method), 0, method, 250, 0};
    std::vector<uint8_t> changed = whole;
    changed.insert(changed.end(), {0, 0x90, 1, 4});
    Write("restart", "whole-" + std::to_string(method), std::as_bytes(std::span(whole)));
    Write("restart", "changed-" + std::to_string(method), std::as_bytes(std::span(changed)));
  }
}

// As heap_fuzz.cpp says: an extent of each table with versions, losers and tombstones by a record with a gap and a long
// runner; the same with an older record behind, and with what is refused.
void Heaps() {
  const std::vector<uint8_t> extents{0, 0, 0, 0, 0, 1, 1, 1};  // of partition 0 of table 0, and 1 of table 1
  const auto slot = [](uint8_t extent, uint8_t index, uint8_t stamp, uint8_t key, uint8_t table, uint8_t flags) {
    const uint8_t bytes = flags != 0 ? 0 : table == 0 ? 8 : 100;
    return std::vector<uint8_t>{1, extent, index, stamp, 0, key, table, flags, bytes, stamp};
  };
  const auto record = [](uint8_t sequence, uint8_t c_p) {
    return std::vector<uint8_t>{2,  sequence, 1,  sequence, c_p, 0, 100, 0, 0, 1 | 1 << 3 | 1 << 6,
                                10, 0,        12, 0,        20,  0, 7,   0};
  };
  const auto write = [](const std::string& name, std::initializer_list<std::vector<uint8_t>> parts) {
    std::vector<uint8_t> input;
    for (const auto& part : parts) input.insert(input.end(), part.begin(), part.end());
    Write("heap", name, std::as_bytes(std::span(input)));
  };
  const std::vector<uint8_t> one = slot(0, 0, 5, 4, 0, 0), newer = slot(0, 1, 9, 4, 0, 0),
                             loser = slot(0, 2, 11, 4, 0, 0), gone = slot(1, 3, 12, 2, 1, 1),
                             runner = slot(1, 4, 20, 2, 1, 0);
  write("versions", {extents, one, newer, loser, gone, runner, record(1, 30)});
  write("older-record", {extents, one, newer, loser, gone, runner, record(1, 8), record(2, 30)});
  write("twice", {extents, one, slot(0, 6, 5, 4, 0, 0), record(1, 30)});
  write("superblock", {extents, one, record(1, 30), {3, 48, 0, 8, 0, 0, 0, 0, 0, 0}});
  write("byte", {extents, one, record(1, 30), {4, 0, 0x40, 0x30, 0, 1}});
}

// One mini-transaction with a change of each kind: a leaf with rows, and a root that grows over it.
void PagesRecords() {
  const mm::TxnName writer{mm::MasterId(1), mm::ClusterEpoch(1), 5};
  const std::string_view text = "an image";
  const std::span<const std::byte> image = std::as_bytes(std::span(text));
  std::vector<std::byte> cells;
  mm::EncodeRow({7, {mm::TxnName(), true, image}, false, {}}, cells);
  const mm::PageId root(1), leaf(2);
  std::vector<mm::PageChange> changes;
  const auto add = [&changes](mm::PageId page, const mm::Change& what) { changes.push_back({page, {}, {}, what}); };
  add(root, mm::FormatPage{mm::TreeId(3), 0, mm::PageId(), 0, 0, {}});
  add(leaf, mm::FormatPage{mm::TreeId(3), 0, mm::PageId(), 0, 1, cells});
  add(leaf, mm::PutRow{7, writer, true, 3, 2, image.first(4)});
  add(leaf, mm::RestoreRow{7, writer});
  const std::array<uint16_t, 3> piece = {2, 1, 'n'};
  add(leaf, mm::PutRow{7, writer, true, 0, 0, std::as_bytes(std::span(piece)).first(5), true});
  add(leaf, mm::MakeDelete(7, writer));
  add(leaf, mm::RemoveRow{7});
  add(leaf, mm::SplitLeft{40, mm::PageId(4)});
  add(root, mm::SplitRoot{leaf, mm::PageId(4), 40});
  add(root, mm::InsertChild{90, mm::PageId(5)});
  mm::VsClock clock(mm::MasterId(1));
  mm::StampChanges(clock, changes);
  const std::vector<std::byte> body = mm::EncodePages(changes);
  Write("pages_record", "each-kind", body);
  Write("pages_record", "cut-off", std::span(body).first(body.size() - 3));
}

// Each is an offset of 2 bytes, and a byte.
void PageImages() {
  Write("slotted_page", "as-it-was", std::string_view());
  Write("slotted_page", "level", std::string_view("\x2a\x00\x01", 3));
  Write("slotted_page", "two-slots-of-one-cell", std::string_view("\x30\x00\x55\x31\x00\x3f", 6));
}

// Operations of cluster_logs_fuzz.cpp.
void ClusterLogs() {
  using namespace std::string_view_literals;
  constexpr std::string_view kPut = "\0\5\1\10abcdefgh"sv, kOther = "\0\6\2\10ijklmnop"sv, kEnd = "\2\1\0"sv,
                             kLfb = "\3"sv;
  const auto write = [](const std::string& name, std::initializer_list<std::string_view> parts) {
    std::string input;
    for (const std::string_view part : parts) input += part;
    Write("cluster_logs", name, std::string_view(input));
  };
  write("committed", {kPut, kEnd, kLfb});
  write("loser", {kPut, kEnd, kLfb, kOther, kLfb});
  write("without-lfb", {kPut, kEnd, kLfb, kOther, "\2\2\0"sv});
  write("rolled-back", {kPut, "\1\5\1"sv, "\2\1\1"sv, kLfb});
  write("damage", {kPut, kEnd, kLfb, kOther, kLfb, "\6\1\0\20"sv, "\6\2\0\20"sv});
  write("raw", {"\4\7change!"sv, "\5\41\3end"sv, kLfb});
}

}  // namespace
}  // namespace dbx::fuzz

int main(int argc, char** argv) {
  using namespace dbx::fuzz;
  if (argc != 2) return std::fputs("usage: make_corpus DIRECTORY\n", stderr), 2;
  directory = argv[1];
  FileHeaders();
  Histories();
  Stamped();
  Built();
  LsnVectors();
  Text();
  AckFiles();
  RunFiles();
  Restarts();
  RowChainStreams();
  Heaps();
  PagesRecords();
  PageImages();
  ClusterLogs();
}
