#include "system/runs/print_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "logging/device/file_system.h"
#include "logging/device/posix_file_system.h"
#include "logging/format.h"
#include "multi_master/log/flush_buffer.h"
#include "multi_master/log/records.h"
#include "multi_master/log/store_file.h"
#include "multi_master/log/store_set.h"
#include "multi_master/page/page_change.h"
#include "multi_master/restart/remaining_log.h"
#include "system/runs/cluster_file.h"
#include "system/runs/log_directory.h"

namespace dbx {
namespace {

using Report = std::function<void(const Error&)>;

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string NameOf(const mm::TxnName& txn) {
  return fmt::format("{}:{}:{}", txn.master.value(), txn.epoch.value(), txn.sequence);
}
std::string NameOf(const mm::PageLsn& lsn) {
  return lsn.time == mm::VsTime() ? "(loaded)" : fmt::format("({}, {})", lsn.master.value(), lsn.time.value());
}

// ---- Records of a master's log -----------------------------------------------------------------------------

std::string TextOf(const mm::FormatPage& c) {
  return fmt::format("format tree {} level {} right {} high key {}, {} cells in {} bytes", c.tree.value(), c.level,
                     c.right.value(), c.high_key, c.cells_count, c.cells.size());
}
std::string TextOf(const mm::PutRow& c) {
  if (c.in_pieces) return fmt::format("put row {} by {}, {} bytes of pieces", c.key, NameOf(c.writer), c.middle.size());
  return fmt::format("{} row {} by {}, keeps {} and {} bytes, {} new", c.present ? "put" : "delete", c.key,
                     NameOf(c.writer), c.prefix_bytes, c.suffix_bytes, c.middle.size());
}
std::string TextOf(const mm::RestoreRow& c) { return fmt::format("restore row {} of {}", c.key, NameOf(c.writer)); }
std::string TextOf(const mm::RemoveRow& c) { return fmt::format("remove row {}", c.key); }
std::string TextOf(const mm::SplitLeft& c) {
  return fmt::format("split at {}, right {}", c.separator, c.right.value());
}
std::string TextOf(const mm::SplitRoot& c) {
  return fmt::format("split root at {}, left {}, right {}", c.separator, c.left.value(), c.right.value());
}
std::string TextOf(const mm::InsertChild& c) {
  return fmt::format("insert child {} at {}", c.child.value(), c.separator);
}

std::string PagesText(std::span<const std::byte> body) {
  const auto pages = mm::DecodePagesRecord(body);
  const auto changes = mm::DecodePages(mm::WireReader(pages->body).GetList());
  if (!changes) return " whose changes make no sense\n";
  std::string text = fmt::format(" {} changes from time {}\n", pages->changes, pages->first.value());
  for (const mm::PageChange& change : *changes) {
    text +=
        fmt::format("      page {} time {} previous {}: {}\n", change.page.value(), change.lsn.time.value(),
                    NameOf(change.previous), std::visit([](const auto& what) { return TextOf(what); }, change.what));
  }
  return text;
}

std::string EndText(std::span<const std::byte> body) {
  constexpr const char* kOutcomes[] = {"", "committed", "aborted", "read only"};
  const auto end = mm::DecodeEnd(body);
  return fmt::format(" time {} {} {} txn {}:{}\n", end->time.value(), kOutcomes[static_cast<size_t>(end->outcome)],
                     NameOf(end->txn), end->id.worker().value(), end->id.sequence());
}

std::string LfbText(mm::MasterId master, uint32_t masters, std::span<const std::byte> body) {
  const auto lfb = mm::DecodeLfb(master, body);
  std::string text = fmt::format(" time {} predecessor {} stamp [", lfb->time().value(), lfb->predecessor.value());
  for (uint8_t i = 0; i < masters; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ", lfb->stamp.of(mm::MasterId(i)).value());
  }
  return text + "]\n";
}

// A record that a reader has checked.
std::string RecordText(mm::MasterId master, uint32_t masters, const format::RecordHeader& header,
                       std::span<const std::byte> body) {
  const auto kind = static_cast<format::RecordKind>(header.kind);
  const auto line = [&](const char* name) {
    return fmt::format("  lsn {} {} ({} bytes)", header.lsn, name, header.length);
  };
  if (kind == mm::kPagesKind) return line("pages") + PagesText(body);
  if (kind == mm::kEndKind) return line("end") + EndText(body);
  if (kind == mm::kLfbKind) return line("lfb") + LfbText(master, masters, body);
  if (kind != format::RecordKind::kPad || body.size() < sizeof(format::PadBody)) return line("void") + "\n";
  format::PadBody pad;
  std::memcpy(&pad, body.data(), sizeof pad);
  return line("pad") + fmt::format(" durable {}\n", pad.durable_lsn);
}

struct Counts {
  uint64_t flushes = 0, pages = 0, changes = 0, ends = 0;
};

void PrintGroup(mm::MasterId master, uint32_t masters, const mm::LfbGroup& group, uint64_t& records_left,
                Counts& counts) {
  ++counts.flushes;
  format::RecordHeader header;
  for (size_t at = 0; at < group.bytes.size(); at += header.length) {
    std::memcpy(&header, group.bytes.data() + at, sizeof header);
    const auto body = std::span(group.bytes).subspan(at + sizeof header, header.length - sizeof header);
    const auto kind = static_cast<format::RecordKind>(header.kind);
    if (kind == mm::kPagesKind) ++counts.pages, counts.changes += mm::DecodePagesRecord(body)->changes;
    counts.ends += kind == mm::kEndKind;
    if (records_left == 0) continue;
    --records_left;
    Print(RecordText(master, masters, header, body));
  }
}

// ---- A cluster ------------------------------------------------------------------------------------------------

// Of each store how much it has.
void PrintCopies(const mm::RemainingLog& log) {
  for (const mm::RemainingCopy& copy : log.copies()) {
    if (copy.log == nullptr) {
      Print(fmt::format("  {}: cannot be read\n", BaseNameOf(copy.directory)));
      continue;
    }
    std::string text = fmt::format("  {}: up to LSN {}, written by epoch {}, no older epoch than {} writes",
                                   BaseNameOf(copy.directory), copy.state.end.value(), copy.state.writer.value(),
                                   copy.state.fence.value());
    for (const Lsn part : copy.state.part_ends) text += fmt::format(", sealed at LSN {}", part.value());
    if (copy.state.is_sealed && copy.state.part_ends.empty()) text += ", sealed at LSN 0";
    Print(text + "\n");
  }
}

void PrintLog(const std::string& directory, const ClusterDescription& cluster, mm::MasterId master, uint64_t records,
              const Report& report) {
  PosixFileSystem files;
  Print(fmt::format("{} log of master {}\n", directory, master.value()));
  mm::RemainingLog log(files, StoreDirectories(directory), mm::ClusterId(cluster.cluster), master);
  PrintCopies(log);
  for (const mm::RemainingCopy& copy : log.copies()) {
    if (!copy.lost_why.empty()) report(Error(ExitStatus::kCorrupt, copy.lost_why));
  }
  Counts counts;
  Lsn durable;  // the end of the last LFB that two stores have
  while (const std::optional<mm::LfbGroup> group = log.Next()) {
    PrintGroup(master, cluster.masters, *group, records, counts);
    if (group->end <= log.two_have()) durable = group->end;
  }
  std::string text = fmt::format("  durable up to LSN {}: the last LFB that two of three stores have", durable.value());
  if (log.position() > durable) text += fmt::format("; one store has LFBs up to LSN {}", log.position().value());
  if (log.end() > log.position()) {
    text += fmt::format("; {} bytes follow{}", log.end() - log.position(),
                        log.sealed() ? " up to the seal, and do not count" : ": PADs, and what no LFB covers");
  }
  Print(fmt::format("{}\n  {} flushes, {} pages with {} changes, {} ends\n", text, counts.flushes, counts.pages,
                    counts.changes, counts.ends));
}

void PrintWhole(const std::string& directory, const PrintClusterOptions& options, const Report& report) {
  PosixFileSystem files;
  const ClusterDescription cluster = ReadClusterFile(files, directory);
  Print(fmt::format("{}\n  cluster {:016x}, {} masters of {} workers, version {}\n", directory, cluster.cluster,
                    cluster.masters, cluster.workers, mm::kLogVersion));
  std::string_view config = cluster.config;
  while (!config.empty()) {
    const size_t line = std::min(config.find('\n'), config.size());
    Print(fmt::format("  {}\n", config.substr(0, line)));
    config.remove_prefix(std::min(line + 1, config.size()));
  }
  for (uint8_t i = 0; i < cluster.masters; ++i) {
    try {
      PrintLog(directory, cluster, mm::MasterId(i), options.records, report);
    } catch (const Error& error) {
      report(error);
    }
  }
}

// ---- Files of a Log Store ------------------------------------------------------------------------------------

std::string FrameText(const mm::FoundFrame& frame) {
  const mm::FrameHeader& h = frame.header;
  const std::string line = fmt::format("  frame {}@{}", h.number, frame.offset);
  const std::string synced = fmt::format(", {} frames were synced\n", h.synced_frames);
  switch (static_cast<mm::StoreFrame>(h.kind)) {
    case mm::StoreFrame::kBegin:
      return line + fmt::format(" begin, version {}", h.length) + synced;
    case mm::StoreFrame::kData:
      return line + fmt::format(" data LSN {} to {} in {} bytes, epoch {}", h.at, h.at + h.length, h.bytes, h.epoch) +
             synced;
    case mm::StoreFrame::kOpen:
      return line + fmt::format(" open, epoch {} writes from LSN {}", h.epoch, h.at) + synced;
    case mm::StoreFrame::kFence:
      return line + fmt::format(" fence, no epoch below {} writes", h.epoch) + synced;
    case mm::StoreFrame::kSeal:
      return line + fmt::format(" seal, the log of the epochs below {} ends at LSN {}", h.epoch, h.at) + synced;
  }
  return line + "\n";
}

std::optional<mm::FrameHeader> BeginOf(std::span<const std::byte> file) {
  mm::FrameHeader header;
  if (file.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  if (!mm::IsFrame(header) || header.kind != static_cast<uint8_t>(mm::StoreFrame::kBegin)) return std::nullopt;
  return header;
}

std::optional<std::pair<uint32_t, uint32_t>> LogAndNumberOf(const std::string& name) {
  unsigned log = 0, number = 0;
  int length = 0;
  if (std::sscanf(name.c_str(), "log-%u-%u%n", &log, &number, &length) != 2) return std::nullopt;
  return static_cast<size_t>(length) == name.size() ? std::optional(std::pair(log, number)) : std::nullopt;
}

void PrintFile(const std::string& path, bool frames) {
  const FileBytes file = PosixFileSystem().Map(path);
  const std::optional<mm::FrameHeader> begin = BeginOf(file.bytes);
  const auto refuse = [&](uint64_t at, const std::string& why, ExitStatus status) {
    throw Error(status, fmt::format("cannot read {}@{}: {}", path, at, why));
  };
  if (!begin) refuse(0, "it does not begin as a file of a Log Store", ExitStatus::kCorrupt);
  if (begin->length != mm::kLogVersion) {
    refuse(0, fmt::format("version {} is not known", begin->length), ExitStatus::kMismatch);
  }
  Print(path + "\n");
  uint64_t synced = 0;
  const mm::StoreFileEnd end =
      mm::ReadStoreFile(file.bytes, begin->salt, begin->number, UINT64_MAX, [&](const mm::FoundFrame& frame) {
        synced = std::max(synced, frame.header.synced_frames);
        if (frames) Print(FrameText(frame));
      });
  Print(fmt::format("  frames {} to {}, up to offset {}; {} are known to have been synced\n", begin->number,
                    end.next_frame - 1, end.offset, synced));
  if (end.bad_was_synced)
    refuse(end.bad_at.value_or(end.offset), "a frame is damaged that had been synced", ExitStatus::kCorrupt);
  if (end.bad_at && !AllZero(file.bytes.subspan(*end.bad_at))) {
    Print(fmt::format("  {} bytes follow that are no frame: a torn tail\n", file.bytes.size() - *end.bad_at));
  }
}

void PrintSet(const std::string& path) {
  const FileBytes file = PosixFileSystem().Map(path);
  const std::optional<mm::StoreSet> set = mm::DecodeStoreSet(file.bytes);
  if (!set) throw Error(ExitStatus::kCorrupt, "cannot read " + path + "@0: its checksum or its length is wrong");
  Print(fmt::format("{}\n  set {} of Log Stores: {}, {}, {}\n", path, set->number.value(), set->stores[0],
                    set->stores[1], set->stores[2]));
}

void PrintStore(const std::string& directory, bool frames, const Report& report) {
  PosixFileSystem files;
  std::vector<std::pair<std::pair<uint32_t, uint32_t>, std::string>> found;
  for (const std::string& name : files.List(directory)) {
    if (const auto number = LogAndNumberOf(name)) found.emplace_back(*number, directory + "/" + name);
  }
  std::sort(found.begin(), found.end());
  const auto print = [&report](auto print_one) {
    try {
      print_one();
    } catch (const Error& error) {
      report(error);
    }
  };
  if (files.KindOf(directory + "/set") == FileSystem::Entry::kFile) print([&] { PrintSet(directory + "/set"); });
  for (const auto& [number, path] : found) print([&, &path = path] { PrintFile(path, frames); });
}

bool IsStoreDirectory(FileSystem& files, const std::string& path) {
  if (files.KindOf(path) != FileSystem::Entry::kDirectory) return false;
  return std::ranges::any_of(files.List(path),
                             [](const std::string& name) { return LogAndNumberOf(name).has_value() || name == "set"; });
}

}  // namespace

bool IsOfCluster(const std::string& path) {
  PosixFileSystem files;
  if (files.KindOf(path) == FileSystem::Entry::kFile) return LogAndNumberOf(BaseNameOf(path)).has_value();
  return IsClusterDirectory(files, path) || IsStoreDirectory(files, path);
}

std::string ClusterDirectoryOf(const std::string& path) {
  PosixFileSystem files;
  if (IsClusterDirectory(files, path)) return path;
  const std::string parent = ParentDirectory(path);
  return files.KindOf(path) == FileSystem::Entry::kFile ? ParentDirectory(parent) : parent;
}

void PrintCluster(const std::string& path, const PrintClusterOptions& options, const Report& report) {
  PosixFileSystem files;
  if (files.KindOf(path) == FileSystem::Entry::kFile) {
    PrintFile(path, options.frames);
  } else if (IsClusterDirectory(files, path)) {
    PrintWhole(path, options, report);
  } else {
    PrintStore(path, options.frames, report);
  }
}

}  // namespace dbx
