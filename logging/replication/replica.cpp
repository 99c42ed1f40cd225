#include "logging/replication/replica.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/racy.h"
#include "logging/device/aligned_buffer.h"
#include "logging/format.h"

namespace dbx {
namespace {

[[noreturn]] void Refuse(const std::string& why) { throw Error(ExitStatus::kCorrupt, "the run has sent " + why); }

// A name that is a file's in a directory, and leads nowhere else.
bool IsName(std::string_view name) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), is_fine);
}

}  // namespace

Replica::Result Replica::Run() {
  ReceivedFrame frame;
  while (!result_.clean && ReceiveNext(frame)) {
    try {
      Apply(frame);
    } catch (const Error& e) {
      Answer(FrameKind::kFailed, frame.header.number, e.what());
      throw;
    }
    ++result_.frames;
    result_.bytes += frame.body.size();
    if ((frame.header.flags & FrameHeader::kConfirm) != 0) Answer(FrameKind::kApplied, frame.header.number, "");
  }
  return result_;
}

// A connection that breaks ends the stream, wherever it does.
bool Replica::ReceiveNext(ReceivedFrame& frame) {
  try {
    return ReceiveFrame(channel_, frame);
  } catch (const Error& e) {
    if (e.status() == ExitStatus::kIo) return false;
    Answer(FrameKind::kFailed, result_.frames, e.what());
    throw;
  }
}

void Replica::Answer(FrameKind kind, uint64_t number, const std::string& text) {
  Frame answer(kind, 0);
  answer.AddText(text);
  answer.SetNumber(number);
  try {
    channel_.Send(answer.Sealed());
  } catch (const Error&) {
    return;  // the next receive finds that the connection is lost
  }
}

void Replica::Apply(const ReceivedFrame& frame) {
  const FrameHeader& header = frame.header;
  FrameReader reader(frame.body);
  if (header.number != result_.frames) {
    Refuse("frame " + std::to_string(header.number) + " where frame " + std::to_string(result_.frames) + " was next");
  }
  if ((header.number == 0) != (header.kind == FrameKind::kHello)) Refuse("a frame that belongs elsewhere");
  switch (header.kind) {
    case FrameKind::kHello:
      return CheckHello(reader);
    case FrameKind::kMakeDirectory:
      return MakeDirectory(DirectoryOf(reader.Rest()));
    case FrameKind::kSyncDirectory:
      return files_.SyncDirectory(DirectoryOf(reader.Rest()));
    case FrameKind::kRemoveDirectory: {
      const std::string path = DirectoryOf(reader.Rest());
      if (made_.erase(path) == 0) Refuse("a directory that it did not make");
      std::erase(result_.directories, path);
      return files_.RemoveDirectory(path);
    }
    case FrameKind::kRemove:
      return files_.Remove(PathOf(reader.Rest()));
    case FrameKind::kRename: {
      const std::string both = reader.Rest();
      const size_t end = std::min(both.find('\0'), both.size() - 1);
      return files_.Rename(PathOf(both.substr(0, end)), PathOf(both.substr(end + 1)));
    }
    case FrameKind::kCreate:
    case FrameKind::kCreatePages:
    case FrameKind::kMap:
      return Create(header, reader);
    case FrameKind::kWrite:
      return Write(FileOf(header), reader);
    case FrameKind::kSync:
      if (FileOf(header).pages != nullptr) FileOf(header).pages->Sync();
      return;
    case FrameKind::kClose:
      open_.erase(header.file);
      return;
    case FrameKind::kDiscard: {
      const uint64_t from = reader.Number(), to = reader.Number();
      return Discard(PathOf(reader.Rest()), from, to);
    }
    case FrameKind::kEnd:
      result_.clean = true;
      return;
    case FrameKind::kApplied:
    case FrameKind::kFailed:
      break;
  }
  Refuse("a frame of an unknown kind");
}

void Replica::CheckHello(FrameReader reader) const {
  const uint32_t version = reader.Short(), directories = reader.Short();
  if (version != kReplicationVersion) {
    throw Error(ExitStatus::kMismatch, "the run's replication has version " + std::to_string(version) +
                                           ", and the replica's " + std::to_string(kReplicationVersion));
  }
  if (directories != directories_.size()) {
    throw Error(ExitStatus::kMismatch, "the run has " + std::to_string(directories) +
                                           " log directories, and the replica " + std::to_string(directories_.size()) +
                                           "; name as many in --log_dir");
  }
}

void Replica::MakeDirectory(const std::string& path) {
  if (!files_.MakeDirectory(path)) {
    throw Error(ExitStatus::kMismatch, path + " is there already: name an empty --log_dir for the replica");
  }
  made_.insert(path);
  result_.directories.push_back(path);
  DirectoryLock lock = files_.LockDirectory(path, FileSystem::LockKind::kExclusive);
  if (lock == nullptr) throw Error(ExitStatus::kIo, path + " is locked by another process");
  locks_.push_back(std::move(lock));
}

void Replica::Create(const FrameHeader& header, FrameReader reader) {
  if (open_.contains(header.file)) Refuse("two files with one number");
  OpenFile file;
  if (header.kind == FrameKind::kCreate) {
    DeviceOptions options;
    options.preallocate_bytes = reader.Number();
    options.write_zeros = false;  // which takes long, and the run waits
    file.blocks = files_.Create(PathOf(reader.Rest()), options);
  } else if (header.kind == FrameKind::kCreatePages) {
    file.pages = files_.CreatePages(PathOf(reader.Rest()), /*durable=*/true);
  } else {
    PersistentMapping mapping{.flush = flush_};
    mapping.create_bytes = reader.Number();
    if (mapping.create_bytes == 0) Refuse("a memory without a size");
    file.memory = files_.MapPersistent(PathOf(reader.Rest()), mapping);
    file.writer = file.memory->NewWriter();
  }
  open_.emplace(header.file, std::move(file));
}

// A file system that has no room for it may do without.
void Replica::Discard(const std::string& path, uint64_t from, uint64_t to) {
  if (from % format::kBlockBytes != 0 || to % format::kBlockBytes != 0 || from >= to)
    Refuse("blocks to free that are not whole");
  try {
    (void)files_.Discard(path, from, to);
  } catch (const Error& e) {
    if (e.status() != ExitStatus::kNoSpace) throw;
  }
}

void Replica::Write(OpenFile& file, FrameReader reader) {
  while (!reader.empty()) {
    const uint64_t offset = reader.Number(), count = reader.Number();
    const auto bytes = reader.Bytes(count);
    if (file.memory != nullptr) {
      const std::span<std::byte> to = file.memory->bytes();
      if (offset > to.size() || count > to.size() - offset) Refuse("a range that ends behind its memory");
      RacyCopy(to.data() + offset, bytes.data(), count);
      file.writer->WriteBack(to.data() + offset, count);
      continue;
    }
    if (offset % format::kBlockBytes != 0 || count % format::kBlockBytes != 0 || count == 0)
      Refuse("blocks that are not whole");
    const auto aligned = CopyToBlocks(bytes);
    if (file.pages != nullptr) {
      file.pages->WriteAt(offset, {aligned.get(), bytes.size()});
    } else {
      if (offset != file.end) Refuse("blocks that leave a gap");
      file.end += bytes.size();
      file.blocks->StartWrite(offset, {aligned.get(), bytes.size()});
      file.blocks->Complete(true);
    }
  }
  if (file.memory != nullptr) file.writer->Drain();
}

Replica::OpenFile& Replica::FileOf(const FrameHeader& header) {
  const auto found = open_.find(header.file);
  if (found == open_.end()) Refuse("a write to a file that it did not create");
  return found->second;
}

std::string Replica::DirectoryOf(const std::string& sent) const {
  const size_t slash = sent.find('/');
  size_t number = 0;
  const auto parsed = std::from_chars(sent.data(), sent.data() + std::min(slash, sent.size()), number);
  if (slash == std::string::npos || parsed.ec != std::errc() || parsed.ptr != sent.data() + slash ||
      number >= directories_.size()) {
    Refuse("a path in no log directory");
  }
  const std::string name = sent.substr(slash + 1);
  if (name.empty()) return directories_[number];
  if (!IsName(name)) Refuse("a path that is no name of a run");
  return directories_[number] + "/" + name;
}

std::string Replica::PathOf(const std::string& sent) const {
  const size_t slash = sent.rfind('/');
  if (slash == std::string::npos || !IsName(std::string_view(sent).substr(slash + 1))) Refuse("a path without a name");
  const std::string directory = DirectoryOf(sent.substr(0, slash));
  if (!made_.contains(directory)) Refuse("a path in a directory that it did not make");
  return directory + sent.substr(slash);
}

}  // namespace dbx
