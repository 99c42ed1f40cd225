#include "system/transaction/ack_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/host.h"

namespace dbx {

struct AckFile::Header {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC-32C of identity
  struct Identity {
    uint64_t run_id;
    uint64_t workers;
    uint64_t bits_per_worker;
    uint64_t first_sequence;  // that of bit 0
    uint64_t note_bytes;      // per worker

    uint64_t FileBytes() const { return kHeaderBytes + workers * (2 * (bits_per_worker / 8) + note_bytes); }
  } identity;
  uint64_t unrecorded;

  uint32_t Checksum() const { return Crc32c(std::as_bytes(std::span(&identity, 1))); }
};

namespace {

constexpr char kMagic[8] = {'D', 'B', 'X', 'A', 'C', 'K', '\r', '\n'};
constexpr uint32_t kVersion = 3;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kPageBits = kPageBytes * 8;
constexpr uint64_t kWorkersMax = uint64_t{1} << (64 - TxnId::kSequenceBits);  // that a transaction id distinguishes
constexpr uint64_t kFileBytesMax = uint64_t{1} << 46;
// Up to this size the file's space is reserved at once, so that a full disk is an error here and no SIGBUS in the
// middle of the run. Larger files stay sparse.
constexpr uint64_t kReserveBytesMax = uint64_t{64} << 20;

[[noreturn]] void Fail(const std::string& path, const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == ENOMEM || error == EFBIG;
  throw Error(full ? ExitStatus::kNoSpace : ExitStatus::kIo,
              "ack file " + path + "@0: " + what + ": " + strerror(error));
}

[[noreturn]] void Refuse(ExitStatus status, const std::string& path, const std::string& why) {
  throw Error(status, "ack file " + path + "@0: " + why);
}

// The sizes are below 2^50 each.
bool Fits(uint64_t workers, uint64_t bits_per_worker, uint64_t note_bytes) {
  return 2 * (bits_per_worker / 8) + note_bytes <= kFileBytesMax / workers;
}

// Whether transaction ids have all the sequence numbers that the bits stand for.
bool HaveIds(uint64_t first_sequence, uint64_t bits_per_worker) {
  constexpr uint64_t kSequences = uint64_t{1} << TxnId::kSequenceBits;
  return first_sequence <= kSequences && bits_per_worker <= kSequences - first_sequence;
}

// The magic of the file, zeros where the file is shorter.
struct Magic {
  char bytes[sizeof kMagic] = {};
  bool operator==(const char (&other)[sizeof kMagic]) const { return std::memcmp(bytes, other, sizeof bytes) == 0; }
};
Magic ReadMagic(int fd, const std::string& path) {
  Magic magic;
  if (::pread(fd, magic.bytes, sizeof magic.bytes, 0) < 0) Fail(path, "cannot read", errno);
  return magic;
}

uint64_t SizeOf(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) Fail(path, "cannot stat", errno);
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

std::unique_ptr<AckFile> AckFile::Create(const std::string& path, uint64_t run_id, uint32_t workers,
                                         uint64_t max_sequence, uint64_t first_sequence, uint64_t note_bytes) {
  std::unique_ptr<AckFile> file(new AckFile);
  file->path_ = path;
  file->run_id_ = run_id;
  file->workers_ = workers;
  file->first_sequence_ = first_sequence;
  file->bits_per_worker_ = (std::min(max_sequence, kFileBytesMax * 8) + kPageBits - 1) / kPageBits * kPageBits;
  file->note_bytes_ = (std::min(note_bytes, kFileBytesMax) + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (workers == 0 || max_sequence == 0 || !Fits(workers, file->bits_per_worker_, file->note_bytes_) ||
      !HaveIds(first_sequence, file->bits_per_worker_)) {
    Refuse(ExitStatus::kUsage, path,
           "no file is made for " + std::to_string(workers) + " workers with " + std::to_string(max_sequence) +
               " transactions each");
  }
  file->fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file->fd_ < 0) Fail(path, "cannot create", errno);
  if (SizeOf(file->fd_, path) > 0 && !(ReadMagic(file->fd_, path) == kMagic)) {
    Refuse(ExitStatus::kMismatch, path, "there is a file that is no ack file; it is not overwritten");
  }
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.identity = {run_id, workers, file->bits_per_worker_, first_sequence, file->note_bytes_};
  header.crc = header.Checksum();
  // Emptied, then named, then grown: a file left by a kill may be overwritten later and is not taken for whole. What
  // cannot be emptied is no file of ours, a device perhaps, and stays.
  if (::ftruncate(file->fd_, 0) != 0) Fail(path, "cannot empty", errno);
  try {
    file->Lay(&header, sizeof header, header.identity.FileBytes());
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  }
  return file;
}

void AckFile::Lay(const void* header, size_t header_bytes, uint64_t bytes) {
  if (::pwrite(fd_, header, header_bytes, 0) != static_cast<ssize_t>(header_bytes)) Fail(path_, "cannot write", errno);
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) Fail(path_, "cannot set its size", errno);
  const auto reserve = static_cast<off_t>(bytes <= kReserveBytesMax ? bytes : kHeaderBytes);
  if (const int error = ::posix_fallocate(fd_, 0, reserve); error != 0) Fail(path_, "cannot reserve space", error);
  memory_bytes_ = bytes;
  Map(true);
}

std::unique_ptr<AckFile> AckFile::Open(const std::string& path, std::optional<uint64_t> run_id) {
  std::unique_ptr<AckFile> file(new AckFile);
  file->path_ = path;
  file->fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->fd_ < 0) Fail(path, "cannot open", errno);
  if (!(ReadMagic(file->fd_, path) == kMagic)) Refuse(ExitStatus::kMismatch, path, "it is no ack file");
  file->memory_bytes_ = SizeOf(file->fd_, path);
  if (file->memory_bytes_ < kHeaderBytes) Refuse(ExitStatus::kCorrupt, path, "its header is cut off");
  file->Map(false);
  const Header& header = file->header();
  if (header.version != kVersion) {
    Refuse(ExitStatus::kMismatch, path, "version " + std::to_string(header.version) + " is not known");
  }
  if (header.crc != header.Checksum()) Refuse(ExitStatus::kCorrupt, path, "bad header checksum");
  const Header::Identity& identity = header.identity;
  if (run_id && *run_id != identity.run_id) Refuse(ExitStatus::kMismatch, path, "it is of another run than the log");
  // With empty regions any number of workers would fit a short file.
  if (identity.bits_per_worker % kPageBits != 0 || identity.bits_per_worker == 0 || identity.workers == 0 ||
      identity.workers > kWorkersMax || identity.bits_per_worker / 8 > kFileBytesMax ||
      identity.note_bytes % kPageBytes != 0 || identity.note_bytes > kFileBytesMax ||
      !Fits(identity.workers, identity.bits_per_worker, identity.note_bytes) ||
      !HaveIds(identity.first_sequence, identity.bits_per_worker) || file->memory_bytes_ != identity.FileBytes()) {
    Refuse(ExitStatus::kCorrupt, path, "its size is not what its header says");
  }
  file->run_id_ = identity.run_id;
  file->workers_ = static_cast<uint32_t>(identity.workers);
  file->bits_per_worker_ = identity.bits_per_worker;
  file->first_sequence_ = identity.first_sequence;
  file->note_bytes_ = identity.note_bytes;
  return file;
}

AckFile::~AckFile() {
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
  if (fd_ >= 0) ::close(fd_);
}

void AckFile::Map(bool writable) {
  void* at = ::mmap(nullptr, memory_bytes_, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) Fail(path_, "cannot map", errno);
  memory_ = static_cast<std::byte*>(at);
}

void AckFile::CountUnrecorded() { AtomicRef<uint64_t>(header().unrecorded).fetch_add(1, std::memory_order_relaxed); }

uint64_t AckFile::unrecorded() const { return header().unrecorded; }

uint64_t AckFile::NextData(uint64_t region_number, uint64_t word) const {
  constexpr uint64_t kWordsPerPage = kPageBits / 64;
  const uint64_t words = bits_per_worker_ / 64;
  if (word >= words || word % kWordsPerPage != 0) return word;
  const auto region = static_cast<off_t>(kHeaderBytes + region_number * (bits_per_worker_ / 8));
  const off_t data = ::lseek(fd_, region + static_cast<off_t>(word * 8), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? words : word;  // ENXIO: a hole up to the end; else holes are not supported here
  return std::min(std::max(word, static_cast<uint64_t>(data - region) / 8), words);
}

}  // namespace dbx
