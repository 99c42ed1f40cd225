#include "system/runs/file_header.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/host.h"

namespace dbx {
namespace {

using format::FileHeader;

constexpr uint32_t kKnownFeatures =
    format::kFeatureContinues | format::kFeatureStriped | format::kFeatureRowCheckpoints;

uint32_t HeaderCrc(FileHeader header) {
  header.header_crc = 0;
  return Crc32c(std::as_bytes(std::span(&header, 1)));
}

[[noreturn]] void Refuse(ExitStatus status, const std::string& file, size_t offset, const std::string& why) {
  throw Error(status, "cannot read log header " + file + "@" + std::to_string(offset) + ": " + why);
}

// Why this copy is not an intact header; empty if it is.
std::string DamageOf(std::span<const std::byte> bytes, size_t copy, FileHeader& header) {
  const size_t offset = copy * format::kHeaderCopyBytes;
  if (bytes.size() < offset + sizeof(FileHeader)) return "the file ends inside its header";
  std::memcpy(&header, bytes.data() + offset, sizeof header);
  if (std::memcmp(header.magic, format::kMagic, sizeof header.magic) != 0) return "not a log file (wrong magic bytes)";
  if (header.header_crc != HeaderCrc(header)) return "header checksum does not match";
  return "";
}

// The checks of a header whose checksum holds: whether this reader can use it.
void CheckUsable(const FileHeader& header, const std::string& file, size_t offset) {
  const auto mismatch = [&](const std::string& why) { Refuse(ExitStatus::kMismatch, file, offset, why); };
  const auto corrupt = [&](const std::string& why) { Refuse(ExitStatus::kCorrupt, file, offset, why); };
  if (header.version != format::kVersion) {
    mismatch("format version " + std::to_string(header.version) + ", this program reads version " +
             std::to_string(format::kVersion));
  }
  if ((header.required_features & ~kKnownFeatures) != 0) {
    mismatch("requires features " + std::to_string(header.required_features) + ", of which this program knows " +
             std::to_string(kKnownFeatures));
  }
  if (header.scheme > static_cast<uint8_t>(format::Scheme::kLast)) {
    mismatch("unknown logging scheme " + std::to_string(header.scheme));
  }
  if (header.payload > static_cast<uint8_t>(format::Payload::kLast)) {
    mismatch("unknown payload " + std::to_string(header.payload));
  }
  if (!Continues(header) && header.start_lsn != 0) {
    mismatch("starts at LSN " + std::to_string(header.start_lsn) + ", not at 0");
  }
  if (header.start_lsn % format::kBlockBytes != 0 || header.start_lsn > format::kLsnMax) {
    corrupt("starts at LSN " + std::to_string(header.start_lsn));
  }
  if (Continues(header) != (header.parent_run_id != 0)) corrupt("does not name the run that it continues");
  if (IsStripe(header) != (header.stripe_bytes != 0) || header.stripe_bytes % format::kBlockBytes != 0) {
    corrupt("stripe unit of " + std::to_string(header.stripe_bytes) + " bytes");
  }
  if (header.log_count == 0 || header.log_count > format::kMaxLogs) {
    corrupt("number of logs is " + std::to_string(header.log_count));
  }
  if (header.log_index >= header.log_count) {
    corrupt("log index " + std::to_string(header.log_index) + " of " + std::to_string(header.log_count) + " logs");
  }
  if (header.config_bytes > sizeof header.config) corrupt("configuration longer than the header");
}

// The first thing in which two headers of one run must not differ, but do; empty if there is none.
std::string DifferenceOf(const FileHeader& a, const FileHeader& b) {
  if (a.run_id != b.run_id) return "run id";
  if (a.database_id != b.database_id) return "database id";
  if (a.scheme != b.scheme) return "logging scheme";
  if (a.payload != b.payload) return "log type";
  if (a.log_count != b.log_count) return "number of logs";
  if (a.schema_hash != b.schema_hash) return "schema";
  if (a.start_lsn != b.start_lsn) return "first LSN";
  if (a.stripe_bytes != b.stripe_bytes) return "stripe unit";
  if (HasRowCheckpoints(a) != HasRowCheckpoints(b)) return "row checkpoints";
  if (a.parent_run_id != b.parent_run_id || a.parent_run != b.parent_run) return "the run that they continue";
  if (ConfigText(a) != ConfigText(b)) return "configuration";
  return "";
}

}  // namespace

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) id = host::RandomNumber();
  return id;
}

FileHeader MakeHeader(const RunIdentity& identity, uint32_t log_index) {
  CHECK(identity.log_count >= 1 && identity.log_count <= format::kMaxLogs);
  CHECK(log_index < identity.log_count);
  FileHeader header{};
  CHECK(identity.config.size() <= sizeof header.config);
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.version = format::kVersion;
  header.database_id = identity.database_id;
  header.run_id = identity.run_id;
  header.log_index = static_cast<uint16_t>(log_index);
  header.log_count = static_cast<uint16_t>(identity.log_count);
  header.ring_bytes = identity.ring_bytes;
  header.schema_hash = identity.schema_hash;
  header.scheme = static_cast<uint8_t>(identity.scheme);
  header.payload = static_cast<uint8_t>(identity.payload);
  header.start_lsn = identity.start_lsn.value();
  header.parent_run_id = identity.parent_run_id;
  header.parent_run = identity.parent_run;
  header.stripe_bytes = identity.stripe_bytes;
  header.required_features = (identity.parent_run_id != 0 ? format::kFeatureContinues : 0) |
                             (identity.stripe_bytes != 0 ? format::kFeatureStriped : 0) |
                             (identity.row_checkpoints ? format::kFeatureRowCheckpoints : 0);
  header.config_bytes = static_cast<uint32_t>(identity.config.size());
  std::memcpy(header.config, identity.config.data(), identity.config.size());
  header.header_crc = HeaderCrc(header);
  return header;
}

void EncodeHeader(const FileHeader& header, std::span<std::byte, format::kStreamOffset> to) {
  FileHeader copy = header;
  copy.header_crc = HeaderCrc(header);
  for (size_t at = 0; at < to.size(); at += sizeof copy) std::memcpy(to.data() + at, &copy, sizeof copy);
}

FileHeader DecodeHeader(std::span<const std::byte> bytes, const std::string& file) {
  FileHeader header{};
  std::string why_first;
  for (size_t copy = 0; copy * format::kHeaderCopyBytes < format::kStreamOffset; ++copy) {
    const std::string damage = DamageOf(bytes, copy, header);
    if (damage.empty()) {
      CheckUsable(header, file, copy * format::kHeaderCopyBytes);
      return header;
    }
    if (copy == 0) why_first = damage;
  }
  Refuse(ExitStatus::kCorrupt, file, 0, why_first + ", nor is the second copy intact");
}

FileHeader ReadHeader(BlockDevice& device) {
  std::vector<std::byte> bytes(format::kStreamOffset);
  bytes.resize(device.Read(0, bytes));
  return DecodeHeader(bytes, device.path());
}

std::string_view ConfigText(const FileHeader& header) {
  return {header.config, std::min<size_t>(header.config_bytes, sizeof header.config)};
}

void CheckSameRun(std::span<const FileHeader> headers, std::span<const std::string> files) {
  CHECK(!headers.empty() && headers.size() == files.size());
  const auto mismatch = [](const std::string& what) { throw Error(ExitStatus::kMismatch, what); };
  std::array<const std::string*, format::kMaxLogs> seen{};
  for (size_t i = 0; i < headers.size(); ++i) {
    const std::string difference = DifferenceOf(headers[0], headers[i]);
    if (!difference.empty())
      mismatch("logs of different runs: " + files[0] + " and " + files[i] + " differ in " + difference);
    const std::string*& same = seen[headers[i].log_index];
    const std::string index = std::to_string(headers[i].log_index);
    if (same != nullptr) mismatch("log " + index + " is there twice: " + *same + " and " + files[i]);
    same = &files[i];
  }
  for (size_t index = 0; index < headers[0].log_count; ++index) {
    if (seen[index] != nullptr) continue;
    mismatch("log " + std::to_string(index) + " of " + std::to_string(headers[0].log_count) +
             " is missing: " + files[0] + " names their number");
  }
  for (size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].log_index == i) continue;
    mismatch("logs in the wrong order: " + files[i] + " is log " + std::to_string(headers[i].log_index) + ", and " +
             files[headers[i].log_index] + " is another");
  }
}

}  // namespace dbx
