// The functions that code compiled with -fsanitize=thread calls before its accesses, in place of ThreadSanitizer's:
// they tell the instrument, and atomics are done here, plainly, as one thread runs all fibres. Copies by libc's
// functions are told of by the linker's --wrap, as are the writes to files.
//
// The names and types are those of the compiler's interface (gcc/sanitizer.def).
#include <liburing.h>
#include <sys/uio.h>

#include <cstdint>
#include <utility>

#include "tests/instruments/line_transfers/instrument.h"

namespace {

using dbx::lines::Kind;
using dbx::lines::OnAccess;
using dbx::lines::OnAtomic;

}  // namespace

#define HERE __builtin_return_address(0)

#define PLAIN(BYTES)                                                                      \
  void __tsan_read##BYTES(void* at) { OnAccess(at, BYTES, Kind::kLoad, HERE); }           \
  void __tsan_write##BYTES(void* at) { OnAccess(at, BYTES, Kind::kStore, HERE); }         \
  void __tsan_unaligned_read##BYTES(void* at) { OnAccess(at, BYTES, Kind::kLoad, HERE); } \
  void __tsan_unaligned_write##BYTES(void* at) { OnAccess(at, BYTES, Kind::kStore, HERE); }

// NOLINTNEXTLINE: the interface's own form
#define FETCH(BITS, NAME, RESULT)                                                          \
  Word##BITS __tsan_atomic##BITS##_fetch_##NAME(Word##BITS* at, Word##BITS operand, int) { \
    OnAtomic(at, BITS / 8, Kind::kOrderedWrite, HERE);                                     \
    const Word##BITS before = *at;                                                         \
    *at = static_cast<Word##BITS>(RESULT);                                                 \
    return before;                                                                         \
  }

#define EXCHANGE_IF_EQUAL(BITS, STRENGTH)                                                                          \
  bool __tsan_atomic##BITS##_compare_exchange_##STRENGTH(Word##BITS* at, Word##BITS* expected, Word##BITS desired, \
                                                         int, int) {                                               \
    OnAtomic(at, BITS / 8, Kind::kOrderedWrite, HERE);                                                             \
    if (*at != *expected) {                                                                                        \
      *expected = *at;                                                                                             \
      return false;                                                                                                \
    }                                                                                                              \
    *at = desired;                                                                                                 \
    return true;                                                                                                   \
  }

#define ATOMIC(BITS)                                                                              \
  Word##BITS __tsan_atomic##BITS##_load(const Word##BITS* at, int) {                              \
    OnAtomic(at, BITS / 8, Kind::kLoad, HERE);                                                    \
    return *at;                                                                                   \
  }                                                                                               \
  void __tsan_atomic##BITS##_store(Word##BITS* at, Word##BITS value, int order) {                 \
    OnAtomic(at, BITS / 8, order == __ATOMIC_SEQ_CST ? Kind::kOrderedWrite : Kind::kStore, HERE); \
    *at = value;                                                                                  \
  }                                                                                               \
  Word##BITS __tsan_atomic##BITS##_exchange(Word##BITS* at, Word##BITS value, int) {              \
    OnAtomic(at, BITS / 8, Kind::kOrderedWrite, HERE);                                            \
    return std::exchange(*at, value);                                                             \
  }                                                                                               \
  FETCH(BITS, add, before + operand)                                                              \
  FETCH(BITS, sub, before - operand)                                                              \
  FETCH(BITS, and, before& operand)                                                               \
  FETCH(BITS, or, before | operand)                                                               \
  FETCH(BITS, xor, before ^ operand)                                                              \
  FETCH(BITS, nand, ~(before & operand))                                                          \
  EXCHANGE_IF_EQUAL(BITS, strong)                                                                 \
  EXCHANGE_IF_EQUAL(BITS, weak)

extern "C" {

using Word8 = uint8_t;
using Word16 = uint16_t;
using Word32 = uint32_t;
using Word64 = uint64_t;
using Word128 = unsigned __int128;

void __tsan_init() {}

void __tsan_read1(void* at) { OnAccess(at, 1, Kind::kLoad, HERE); }
void __tsan_write1(void* at) { OnAccess(at, 1, Kind::kStore, HERE); }
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void __tsan_read_range(void* at, size_t bytes) { OnAccess(at, bytes, Kind::kLoad, HERE); }
void __tsan_write_range(void* at, size_t bytes) { OnAccess(at, bytes, Kind::kStore, HERE); }
// Constructors and destructors set the pointer to the virtual functions.
void __tsan_vptr_update(void* at, void*) { OnAccess(at, 8, Kind::kStore, HERE); }

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
ATOMIC(128)
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  OnAccess(from, bytes, Kind::kLoad, HERE);
  OnAccess(to, bytes, Kind::kStore, HERE);
  return __real_memcpy(to, from, bytes);
}
void* __real_memmove(void* to, const void* from, size_t bytes);
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  OnAccess(from, bytes, Kind::kLoad, HERE);
  OnAccess(to, bytes, Kind::kStore, HERE);
  return __real_memmove(to, from, bytes);
}
void* __real_memset(void* to, int value, size_t bytes);
void* __wrap_memset(void* to, int value, size_t bytes) {
  OnAccess(to, bytes, Kind::kStore, HERE);
  return __real_memset(to, value, bytes);
}
int __real_memcmp(const void* a, const void* b, size_t bytes);
int __wrap_memcmp(const void* a, const void* b, size_t bytes) {
  OnAccess(a, bytes, Kind::kLoad, HERE);
  OnAccess(b, bytes, Kind::kLoad, HERE);
  return __real_memcmp(a, b, bytes);
}

ssize_t __real_pwritev2(int fd, const iovec* parts, int count, off_t at, int flags);
ssize_t __wrap_pwritev2(int fd, const iovec* parts, int count, off_t at, int flags) {
  const ssize_t written = __real_pwritev2(fd, parts, count, at, flags);
  dbx::lines::OnWrite(written > 0 ? static_cast<size_t>(written) : 0);
  return written;
}
// Returns when what it submits is done: whether a later look finds it must not depend on the host's speed.
int __wrap_io_uring_submit(io_uring* ring) {
  size_t bytes = 0;
  const unsigned begin = ring->sq.sqe_head, end = ring->sq.sqe_tail;
  for (unsigned i = begin; i != end; ++i) bytes += ring->sq.sqes[i & *ring->sq.kring_mask].len;
  dbx::lines::OnWrite(bytes);
  return io_uring_submit_and_wait(ring, io_uring_cq_ready(ring) + (end - begin));
}
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd) {
  dbx::lines::OnWrite(0);
  return __real_fdatasync(fd);
}
}

namespace dbx::lines {

void RacyCopyOf(void* to, const void* from, size_t bytes) {
  if (Running()) MayLoseTurn();
  OnAccess(from, bytes, Kind::kLoad, HERE);
  OnAccess(to, bytes, Kind::kStore, HERE);
  __real_memcpy(to, from, bytes);
}

}  // namespace dbx::lines
