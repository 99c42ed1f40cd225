// File headers. The input overwrites the start of a whole header of two copies: a shorter one changes less.
#include "base/crc32c.h"
#include "base/error.h"
#include "tests/fuzz/fuzz.h"

namespace dbx::fuzz {
namespace {

// Whether `bytes` are a header, and that it is one that may be believed.
void Decode(std::span<const std::byte> bytes) {
  format::FileHeader header;
  try {
    header = DecodeHeader(bytes, "file");
  } catch (const Error& error) {
    Require(error.status() == ExitStatus::kCorrupt || error.status() == ExitStatus::kMismatch, error.what());
    return;
  }
  Require(header.log_index < header.log_count && header.log_count <= format::kMaxLogs, "number of logs");
  Require(ConfigText(header).size() == header.config_bytes, "length of the configuration");
  // What was accepted is written and read back as it was.
  std::vector<std::byte> again(format::kStreamOffset);
  EncodeHeader(header, std::span<std::byte, format::kStreamOffset>(again));
  const format::FileHeader second = DecodeHeader(again, "file");
  Require(std::memcmp(&header, &second, sizeof header) == 0, "a header that changes when written and read");
  const std::vector<format::FileHeader> headers(header.log_count, header);
  const std::vector<std::string> files(header.log_count, "file");
  try {
    CheckSameRun(headers, files);
    Require(header.log_count == 1, "one log passes for several");
  } catch (const Error& error) {
    Require(error.status() == ExitStatus::kMismatch, error.what());
  }
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx;
  if (size > format::kStreamOffset) return 0;
  fuzz::Decode(std::as_bytes(std::span(data, size)));  // too short, as a rule
  std::vector<std::byte> file = fuzz::FileHeaderOf(1, 0, 1, format::Scheme::kSerial, 1 << 20);
  if (size > 0) std::memcpy(file.data(), data, size);
  fuzz::Decode(file);
  // The same with the checksum made right, so that the fields themselves are looked at.
  format::FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  header.header_crc = 0;
  header.header_crc = Crc32c(std::as_bytes(std::span(&header, 1)));
  std::memcpy(file.data(), &header, sizeof header);
  fuzz::Decode(file);
  return 0;
}
