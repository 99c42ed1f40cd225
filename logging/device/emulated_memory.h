// Persistent memory of a device of a DeviceProfile: the memory beneath is stored to, written back and drained, and each
// Drain then waits until the device would be done with what was written back, in whole blocks, each once. A block may
// be a cache line. Loads cannot be caught, and are as fast as the memory beneath.
//
// Threads: as persistent_memory.h says.
#pragma once

#include <cstdint>
#include <memory>

#include "logging/device/emulated_device.h"
#include "storage/persistent_memory.h"

namespace dbx {

struct MemoryDevice {
  std::shared_ptr<EmulatedDevice> device;
  DeviceClock* clock;  // outlives the memory
  uint32_t file;       // its number on the device
};

std::unique_ptr<PersistentMemory> EmulateMemory(std::unique_ptr<PersistentMemory> memory, const MemoryDevice& device);

}  // namespace dbx
