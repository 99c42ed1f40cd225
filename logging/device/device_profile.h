// The performance of an emulated device. EmulatedDevice makes a directory behave so; every result includes the figures.
//
// One rate holds for writes and reads together, as they share the device. A durable write is done `flush_nanos` after
// its last byte was transferred; a write or read that begins elsewhere than the last one ended pays `seek_nanos` first.
// The channel, if there is one, is shared by all emulated devices of a run (emulated_channel.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dbx {

struct DeviceProfile {
  std::string name;               // as given on the command line: "nvme:0.025"
  uint64_t bytes_per_second = 0;  // 0: as fast as the underlying directory
  uint64_t flush_nanos = 0;
  uint64_t seek_nanos = 0;
  uint32_t queue_depth = 32;              // requests that the device works on at once
  uint64_t channel_bytes_per_second = 0;  // 0: no channel
  uint32_t block_bytes = 4096;            // of what is mapped whole blocks are written
  // By which a read takes longer than one of DRAM: of a row, where PM_READS is compiled in (charged_reads.h).
  uint64_t read_nanos = 0;

  // Of one device while the others are idle; 0: no limit.
  uint64_t AloneBytesPerSecond() const {
    const auto [slower, faster] = std::minmax(bytes_per_second, channel_bytes_per_second);
    return slower == 0 ? faster : slower;
  }
};

// A directory's emulation, for descriptions.
struct DeviceEmulation {
  DeviceProfile profile;
  std::string over;  // the kind of the underlying directory: "real" or "ram"
};

struct NamedProfile {
  std::string_view name;
  uint64_t bytes_per_second;
  uint64_t flush_nanos;
  uint64_t seek_nanos;
  uint32_t queue_depth;
  uint32_t block_bytes;
};

// Sources of the figures:
//   nvme  2 GB/s per device (Taurus, section 5.2); 50 us per durable write (ELEDA, section 6.1)
//   ssd   Intel DC S3700, the disk of write-behind logging (section 7): 460 MB/s and 65 us for sequential writes by its
//         data sheet
//   hdd   160 MB/s per disk (Taurus, section 5.3); 6.3 ms mean seek and 4.17 ms rotational latency, both of which a
//         durable write waits for (differential logging, section 5.1)
//   disk29  29 MB/s sustained, 6.3 ms mean seek and 4.17 ms rotational latency, which every durable write waits for:
//         the disk of differential logging (section 5.1). That machine has one channel of 160 MB/s for all its disks
//   pm    9.5 GB/s and 600 ns per durable write (write-behind logging, sections 7.5 and 7.6). A stand-in: files of
//         the directory, RAM or not, whose writes take that long; of memory that is mapped, drains do. Loads are as
//         fast as the memory beneath
//         That is memory of four times DRAM's latency (section 7); with latency=N, of N times, each durable write takes
//         (N - 4) x 160 ns longer (section 7.6)
inline constexpr uint64_t kDramNanos = 160;
inline constexpr double kMemoryLatency = 4;
inline constexpr uint32_t kMemoryBlockBytes = 64;
inline constexpr std::array<NamedProfile, 5> kDeviceProfiles{{
    {"nvme", 2'000'000'000, 50'000, 0, 32, 4096},
    {"ssd", 460'000'000, 65'000, 0, 32, 4096},
    {"hdd", 160'000'000, 4'170'000, 6'300'000, 32, 4096},
    {"disk29", 29'000'000, 4'170'000, 6'300'000, 32, 4096},
    {"pm", 9'500'000'000, 600, 0, 32, kMemoryBlockBytes},
}};

}  // namespace dbx
