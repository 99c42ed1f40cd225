#include "multi_master/log/log_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/refusal.h"
#include "logging/device/file_system.h"
#include "multi_master/log/flush_buffer.h"
#include "multi_master/log/store_set.h"

namespace dbx::mm {

LogStore::LogStore(Network& network, FileSystem& files, const LogStoreOptions& options)
    : network_(network), files_(files), options_(options), index_(network.self().index) {
  const std::string path = options_.directory + "/set";
  if (files_.KindOf(path) == FileSystem::Entry::kFile) {
    StoreSetFile file{};
    const auto bytes = std::as_writable_bytes(std::span(&file, 1));
    const std::optional<StoreSet> set = DecodeStoreSet(bytes.first(files_.Open(path)->Read(0, bytes)));
    Refusal(path).Unless(set.has_value(), 0, "its checksum is wrong");
    set_ = *set;
  }
  for (uint8_t i = 0; i < kMastersMax; ++i) {
    const std::string first = options_.directory + "/log-" + std::to_string(i) + "-0";
    if (files_.KindOf(first) != FileSystem::Entry::kFile) continue;
    Log& log = logs_[i];
    log.disk = std::make_unique<StoreLog>(files_, options_.directory, MasterId(i),
                                          SaltOf(options_.cluster.value(), MasterId(i)));
    log.state = log.queued = log.disk->state();
  }
}

LogStore::~LogStore() { Stop(); }

void LogStore::Start() {
  thread_ = Thread([this] { Loop(); });
  network_.Start(*this);
}

void LogStore::Stop() {
  network_.Stop();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool LogStore::failed() {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr;
}

void LogStore::ThrowIfFailed() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

// --- what comes in ---

bool LogStore::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  const std::optional<LogMessage> message = DecodeLog(body);
  if (!message) return false;
  const std::lock_guard lock(mutex_);
  return error_ != nullptr || Handle(from, type, *message);
}

bool LogStore::Handle(NodeId from, MessageType type, const LogMessage& message) {
  Log& log = Of(message.log);
  if (type == kLogRead) return OnRead(from, message, log);
  if (type == kLogData) return OnCopied(from, message, log);
  // Refused for ever: a fenced epoch, an older set.
  const bool is_append = type == kLogAppend || type == kLogComplete;
  const bool is_fenced = message.epoch < log.queued.fence;
  if (!KnowsSet(message, !is_append) || is_fenced) {
    Reply(from, kLogStale, message.log, log);
    return true;
  }
  if (is_append) return OnAppend(from, message, log);
  if (type == kLogOpen) return OnOpen(from, message, log);
  if (type == kLogSeal) return OnSeal(from, message, log);
  if (type == kLogFence) {
    Queue(log, {StoreFrame::kFence, message.epoch, {}, 0, {}}, {from, kLogState});
    return true;
  }
  if (type == kLogCopy) {
    if (message.peer == index_) return false;
    const NodeId source{Role::kLogStore, message.peer};
    if (log.copy && log.copy->source == source) return true;
    log.copy = Copy{source, from, {}};
    AskForCopy(message.log, log);
    return true;
  }
  return false;
}

bool LogStore::KnowsSet(const LogMessage& message, bool may_adopt) {
  if (message.set.number > set_.number && may_adopt) {
    set_ = message.set;
    set_is_dirty_ = true;
    wake_.notify_all();
  }
  return message.set.number == set_.number && set_.Has(index_);
}

bool LogStore::OnOpen(NodeId from, const LogMessage& message, Log& log) {
  if (message.epoch == log.queued.writer) {
    Reply(from, kLogState, message.log, log);
    return true;
  }
  if (message.at < log.queued.sealed) {
    Reply(from, kLogStale, message.log, log);
    return true;
  }
  Queue(log, {StoreFrame::kOpen, message.epoch, message.at, 0, {}}, {from, kLogState});
  return true;
}

bool LogStore::OnAppend(NodeId from, const LogMessage& message, Log& log) {
  if (message.epoch != log.queued.writer) {
    Reply(from, kLogState, message.log, log);
    return true;
  }
  if (message.complete > log.complete) {
    log.complete = message.complete;
    Serve(message.log, log);
  }
  if (message.length == 0) return true;
  if (message.length % format::kBlockBytes != 0 || message.at.value() % format::kBlockBytes != 0) return false;
  if (message.at > log.queued.end) {
    Reply(from, kLogState, message.log, log);
  } else if (message.at < log.queued.end) {
    // Once more, after a break; what is queued is answered when it is synced.
    const Lsn end = message.at + message.length;
    if (end <= log.state.end) {
      Reply(from, kLogAppended, message.log, log);
    } else {
      // Some of it may have come as a copy, whose sync another process is told of.
      log.late[from] = {std::min(end, log.queued.end), end <= log.queued.end ? kLogAppended : kLogState};
      AnswerLate(message.log, log);
    }
  } else {
    if (log.queued_bytes > options_.queued_bytes_max) return false;
    Queue(log,
          {StoreFrame::kData, message.epoch, message.at, message.length, {message.bytes.begin(), message.bytes.end()}},
          {from, kLogAppended});
  }
  return true;
}

bool LogStore::OnSeal(NodeId from, const LogMessage& message, Log& log) {
  // It lacks some of what is to be sealed, or is sealed.
  const bool is_sealed = log.queued.is_sealed && message.at <= log.queued.sealed;
  if (message.at > log.queued.end || is_sealed) {
    Reply(from, message.at < log.queued.sealed ? kLogStale : kLogState, message.log, log);
    return true;
  }
  Queue(log, {StoreFrame::kSeal, message.epoch, message.at, 0, {}}, {from, kLogState});
  return true;
}

bool LogStore::OnRead(NodeId from, const LogMessage& message, Log& log) {
  if (message.raw && from.role == Role::kMaster) return false;
  LogMessage read = message;
  read.bytes = {};
  log.reads[from] = read;
  Serve(message.log, log);
  return true;
}

void LogStore::OnLinkDown(NodeId peer) {
  const std::lock_guard lock(mutex_);
  for (Log& log : logs_) {
    log.reads.erase(peer);
    log.late.erase(peer);
    if (log.copy && log.copy->source == peer) log.copy.reset();
  }
}

// --- copies from another store ---

void LogStore::AskForCopy(MasterId id, Log& log) {
  LogMessage read{id, log.queued.fence, set_, log.queued.end};
  read.length = options_.read_bytes_max;
  read.raw = true;
  network_.Send(log.copy->source, kLogRead, EncodeLog(read));
}

bool LogStore::OnCopied(NodeId from, const LogMessage& message, Log& log) {
  if (!log.copy || from != log.copy->source || !message.raw) return true;
  if (message.at != log.queued.end) {
    AskForCopy(message.log, log);
    return true;
  }
  const NodeId asker = log.copy->asker;
  log.copy->until = std::max(log.copy->until, message.complete);
  if (message.at > Lsn() && message.at == message.part_begin && log.queued.sealed < message.at) {
    Queue(log, {StoreFrame::kSeal, message.epoch, message.at, 0, {}}, {asker, kLogState});
  }
  const Lsn end = message.at + message.length;
  const bool is_last = end >= log.copy->until;
  if (message.length > 0) {
    Queue(log,
          {StoreFrame::kData, message.epoch, message.at, message.length, {message.bytes.begin(), message.bytes.end()}},
          {asker, kLogState});
  }
  if (message.part_end != Lsn() && message.part_end == end && log.queued.sealed < end) {
    Queue(log, {StoreFrame::kSeal, message.epoch, end, 0, {}}, {asker, kLogState});
  }
  if (is_last) {
    log.copy.reset();
    if (log.queue.empty()) Reply(asker, kLogState, message.log, log);
  } else {
    AskForCopy(message.log, log);
  }
  return true;
}

// --- what goes out ---

void LogStore::Queue(Log& log, FrameToWrite frame, Answer answer) {
  StoreLog::Apply(frame, log.queued);
  log.queued_bytes += frame.bytes.size();
  log.queue.push_back({std::move(frame), answer});
  wake_.notify_all();
}

void LogStore::Reply(NodeId to, MessageType type, MasterId id, const Log& log) {
  LogMessage message{id, type == kLogAppended ? log.state.writer : log.state.fence, set_, log.state.end};
  if (type == kLogStale) message.epoch = log.queued.fence;
  message.complete = ServedUntil(log, false);
  message.part_end = log.state.sealed;
  message.raw = log.state.is_sealed;
  network_.Send(to, type, EncodeLog(message));
}

Lsn LogStore::ServedUntil(const Log& log, bool raw) const {
  return raw ? log.state.end : std::min(log.state.end, std::max(log.complete, log.state.sealed));
}

void LogStore::AnswerLate(MasterId id, Log& log) {
  std::erase_if(log.late, [&](const auto& late) {
    const auto& [to, answer] = late;
    const bool is_due = answer.first <= log.state.end;
    if (is_due) Reply(to, answer.second, id, log);
    return is_due;
  });
}

// The readers for which there is something now.
void LogStore::Serve(MasterId id, Log& log) {
  for (auto read = log.reads.begin(); read != log.reads.end();) {
    const auto& [reader, message] = *read;
    // A copy is told at once, too, that there is nothing.
    if (ServedUntil(log, message.raw) > message.at || message.raw) {
      ServeOne(reader, message, id, log);
      read = log.reads.erase(read);
    } else {
      ++read;
    }
  }
}

void LogStore::ServeOne(NodeId reader, const LogMessage& read, MasterId id, Log& log) {
  const Lsn until = ServedUntil(log, read.raw);
  LogMessage data{id, log.state.fence, set_, read.at};
  data.raw = read.raw;
  data.complete = until;
  std::vector<std::byte> bytes;
  if (log.disk != nullptr && until > read.at) {
    bytes = log.disk->Read(read.at, until, std::min(read.length, options_.read_bytes_max));
    data.part_begin = log.disk->PartBegin(read.at);
    data.part_end = log.disk->PartEnd(read.at);
    // A copy is of the same writer, which may go on there.
    data.epoch = data.part_end == Lsn() ? log.state.writer : ClusterEpoch();
  }
  data.length = static_cast<uint32_t>(bytes.size());
  data.bytes = Trimmed(bytes);
  network_.Send(reader, kLogData, EncodeLog(data));
}

// --- the thread that writes ---

void LogStore::Loop() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] {
    return stopping_ || set_is_dirty_ ||
           std::any_of(logs_.begin(), logs_.end(), [](const Log& log) { return !log.queue.empty(); });
  };
  try {
    while (!stopping_) {
      wake_.wait(lock, has_work);
      if (set_is_dirty_) WriteSet(lock);
      for (uint8_t i = 0; i < kMastersMax; ++i) {
        if (!logs_[i].queue.empty() && !set_is_dirty_) WriteBatch(lock, MasterId(i));
      }
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
  }
}

void LogStore::WriteSet(std::unique_lock<Mutex>& lock) {
  const StoreSetFile file = EncodeStoreSet(set_);
  lock.unlock();
  WriteFileAtomically(files_, options_.directory + "/set", std::as_bytes(std::span(&file, 1)));
  lock.lock();
  set_is_dirty_ = set_.number.value() != file.number;
}

void LogStore::WriteBatch(std::unique_lock<Mutex>& lock, MasterId id) {
  Log& log = Of(id);
  std::vector<FrameToWrite> frames;
  std::vector<Answer> answers;
  while (!log.queue.empty()) {
    frames.push_back(std::move(log.queue.front().frame));
    const Answer answer = log.queue.front().answer;
    const auto is_same = [&](const Answer& other) { return other.to == answer.to && other.type == answer.type; };
    if (std::none_of(answers.begin(), answers.end(), is_same)) answers.push_back(answer);
    log.queue.pop_front();
  }
  log.queued_bytes = 0;
  lock.unlock();
  std::unique_ptr<StoreLog> made;
  if (log.disk == nullptr) {
    made = std::make_unique<StoreLog>(files_, options_.directory, id, SaltOf(options_.cluster.value(), id));
  }
  StoreLog& disk = made != nullptr ? *made : *log.disk;
  disk.Sync(frames);
  lock.lock();
  if (made != nullptr) log.disk = std::move(made);
  log.disk->Publish(std::move(frames));
  log.state = log.disk->state();
  for (const Answer& answer : answers) Reply(answer.to, answer.type, id, log);
  AnswerLate(id, log);
  Serve(id, log);
}

}  // namespace dbx::mm
