// Ack files. The input is run id, workers, bits per worker, the first sequence, bytes of notes per worker and then
// words of the regions; the target makes magic, version and checksum right, and the file as long as the header says if
// that is not too long.
#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "system/transaction/ack_file.h"
#include "tests/fuzz/fuzz.h"

namespace dbx::fuzz {
namespace {

constexpr size_t kHeaderBytes = 4096;
constexpr uint64_t kRegionBytesMax = 1 << 20;

std::vector<std::byte> FileOf(std::span<const std::byte> input) {
  Input in(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  std::vector<std::byte> file(kHeaderBytes);
  const auto put = [&file](size_t at, auto value) { std::memcpy(file.data() + at, &value, sizeof value); };
  const auto run_id = in.Take<uint64_t>(), workers = in.Take<uint64_t>(), bits = in.Take<uint64_t>();
  std::memcpy(file.data(), "DBXACK\r\n", 8);
  put(8, uint32_t{3});
  put(16, run_id);
  put(24, workers);
  put(32, bits);
  put(40, in.Take<uint64_t>());
  const auto notes = in.Take<uint64_t>();
  put(48, notes);
  put(12, Crc32c(std::span(file).subspan(16, 40)));
  const auto words = in.Rest();
  file.insert(file.end(), words.begin(), words.end());
  const auto bytes = static_cast<unsigned __int128>(workers) * (2 * static_cast<unsigned __int128>(bits / 8) + notes);
  if (bytes <= kRegionBytesMax) file.resize(kHeaderBytes + static_cast<size_t>(bytes));
  return file;
}

void Open(int fd, std::span<const std::byte> file) {
  Require(::ftruncate(fd, 0) == 0 && ::pwrite(fd, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size()),
          "the file cannot be written");
  std::unique_ptr<AckFile> acks;
  try {
    acks = AckFile::Open("/proc/self/fd/" + std::to_string(fd));
  } catch (const Error& error) {
    const ExitStatus status = error.status();
    Require(status == ExitStatus::kCorrupt || status == ExitStatus::kMismatch || file.empty(), error.what());
    return;
  }
  size_t bits = 0;
  const size_t writers_bytes = acks->workers() * (acks->bits_per_worker() / 8);
  for (const std::byte byte : file.subspan(kHeaderBytes, writers_bytes))
    bits += std::popcount(std::to_integer<uint8_t>(byte));
  size_t seen = 0;
  std::optional<TxnId> last;
  acks->ForEachAcknowledged([&](TxnId id) {
    Require(!last || *last < id, "transactions out of order, or one of them twice");
    last = id;
    ++seen;
  });
  Require(seen == bits, "another number of transactions than of bits");
  uint64_t sum = 0;  // whatever is there can be read
  for (uint32_t w = 0; w < acks->workers(); ++w) {
    for (const std::byte byte : acks->NotesOf(WorkerId(w))) sum += std::to_integer<uint64_t>(byte);
  }
  Require(sum <= 255 * kRegionBytesMax, "more notes than bytes");
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = ::memfd_create("acks", MFD_CLOEXEC);
  const auto input = std::as_bytes(std::span(data, size));
  dbx::fuzz::Open(fd, input);
  dbx::fuzz::Open(fd, dbx::fuzz::FileOf(input));
  return 0;
}
