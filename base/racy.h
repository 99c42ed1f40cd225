// Reads and copies of memory that another thread may be overwriting (optimistic concurrency control).
//
// The C++ memory model has no name for a plain read that may race and is thrown away if it did, so these few functions
// say it in x86-64 instructions: no alignment is needed, a read of up to 8 bytes within a cache line is not torn, and
// the compiler keeps them between the version reads around them. x86-64 does not reorder loads with loads nor stores
// with stores, so no fence is needed. Callers must validate a version afterwards and discard a torn read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dbx {

// Keeps the compiler, not the processor, from moving memory accesses across.
inline void CompilerBarrier() { asm volatile("" ::: "memory"); }

// Copies `bytes` bytes that may change meanwhile, or into memory that others may be reading.
inline void RacyCopy(void* to, const void* from, size_t bytes) {
  auto* d = static_cast<char*>(to);
  const auto* s = static_cast<const char*>(from);
  for (; bytes >= 64; bytes -= 64, d += 64, s += 64) {
    asm volatile(
        "movdqu (%1), %%xmm0\n\tmovdqu 16(%1), %%xmm1\n\tmovdqu 32(%1), %%xmm2\n\tmovdqu 48(%1), %%xmm3\n\t"
        "movdqu %%xmm0, (%0)\n\tmovdqu %%xmm1, 16(%0)\n\tmovdqu %%xmm2, 32(%0)\n\tmovdqu %%xmm3, 48(%0)"
        :
        : "r"(d), "r"(s)
        : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
  }
  for (; bytes >= 8; bytes -= 8, d += 8, s += 8) {
    uint64_t word;
    asm volatile("mov (%1), %0" : "=r"(word) : "r"(s) : "memory");
    asm volatile("mov %1, (%0)" : : "r"(d), "r"(word) : "memory");
  }
  for (; bytes > 0; --bytes, ++d, ++s) {
    uint32_t byte;
    asm volatile("movzbl (%1), %0" : "=r"(byte) : "r"(s) : "memory");
    asm volatile("movb %b1, (%0)" : : "r"(d), "q"(byte) : "memory");
  }
}

template <class T>
T RacyLoad(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  if constexpr (sizeof(T) == 8) {
    uint64_t word;
    asm volatile("mov %1, %0" : "=r"(word) : "m"(*static_cast<const char(*)[8]>(from)));
    std::memcpy(&value, &word, 8);
  } else if constexpr (sizeof(T) == 4) {
    uint32_t word;
    asm volatile("mov %1, %0" : "=r"(word) : "m"(*static_cast<const char(*)[4]>(from)));
    std::memcpy(&value, &word, 4);
  } else {
    RacyCopy(&value, from, sizeof(T));
  }
  return value;
}

}  // namespace dbx
