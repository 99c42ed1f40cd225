// Private caches that are kept coherent by MESI, as a directory sees them: which cores hold a line, and whether one of
// them has written it. Told of each access in turn, it says what the access finds.
//
// A core has one private cache: of a number of sets and ways, with random replacement, or without a limit. Behind all
// of them is memory (or a shared cache that holds everything). States of a line: held by none; M or E by one core; S by
// one or several. A core that writes a line in S must have the other copies invalidated: an upgrade. There are no
// store buffers, no prefetchers, and no distances between cores.
//
// An event is false sharing when no byte of the word (8 bytes) in question concerns two cores: of a read, none but the
// reader has written it; of a write, none but the writer has touched it. It is judged by all accesses before.
//
// One thread. The model: Papamarcos, Patel: A low-overhead coherence solution for multiprocessors with private cache
// memories, ISCA 1984; false sharing: Torrellas, Lam, Hennessy, IEEE Transactions on Computers 43(6), 1994.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace dbx::lines {

inline constexpr uint32_t kCoresMax = 128;
inline constexpr uint32_t kLineBytes = 64;
inline constexpr uint32_t kWordBytes = 8;
inline constexpr uint32_t kWordsPerLine = kLineBytes / kWordBytes;

class CoreSet {
 public:
  bool Has(uint32_t core) const { return (words_[core / 64] >> (core % 64) & 1) != 0; }
  bool empty() const { return (words_[0] | words_[1]) == 0; }
  uint32_t count() const { return static_cast<uint32_t>(std::popcount(words_[0]) + std::popcount(words_[1])); }
  void Add(uint32_t core) { words_[core / 64] |= uint64_t{1} << (core % 64); }
  void Remove(uint32_t core) { words_[core / 64] &= ~(uint64_t{1} << (core % 64)); }
  void Become(uint32_t core) {
    words_ = {};
    Add(core);
  }

 private:
  std::array<uint64_t, kCoresMax / 64> words_{};
};

// What an access finds.
enum class Found : uint8_t {
  kHit,      // the core holds the line, and may do this to it
  kMemory,   // no private cache holds it
  kClean,    // others hold it as it is in memory
  kDirty,    // another core has written it: it comes from there
  kUpgrade,  // the core holds it in S and writes
  kCount
};

struct Line {
  enum class State : uint8_t { kShared, kExclusive, kModified };  // of its holders

  CoreSet holders;
  // The caller's: when the last transfer of the line ends, and the place in the code that wrote it last.
  uint64_t busy_until = 0;
  uintptr_t written_at = 0;
  // By word: the core that has touched, or written it, plus 1; 0: none, kSeveral: more than one.
  std::array<uint8_t, kWordsPerLine> toucher{};
  std::array<uint8_t, kWordsPerLine> writer{};
  State state = State::kShared;
};

struct Event {
  Found found = Found::kHit;
  bool is_false_sharing = false;  // of kClean, kDirty and kUpgrade
  uint32_t invalidated = 0;       // copies of other cores
  Line* line = nullptr;
};

// Of one core. `ways` 0: no limit.
struct CacheShape {
  uint32_t sets = 0;
  uint32_t ways = 0;
};

class Coherence {
 public:
  // `cores` at most kCoresMax.
  Coherence(uint32_t cores, CacheShape shape, uint64_t seed = 1);

  uint32_t cores() const { return cores_; }

  // Words [first, last] of the line with this number (address / kLineBytes).
  Event Access(uint32_t core, uint64_t line_number, uint32_t first, uint32_t last, bool writes);

  // Of an access within one line, by address.
  Event AccessBytes(uint32_t core, uintptr_t address, size_t bytes, bool writes) {
    const auto first = static_cast<uint32_t>(address % kLineBytes / kWordBytes);
    const auto last = static_cast<uint32_t>((address + bytes - 1) % kLineBytes / kWordBytes);
    return Access(core, address / kLineBytes, first, last, writes);
  }

 private:
  static constexpr uint32_t kLinesPerPage = 64;
  static constexpr uint8_t kSeveral = 0xff;
  static_assert(kCoresMax < kSeveral);
  using Page = std::array<Line, kLinesPerPage>;

  Line& LineOf(uint64_t number);
  static bool ConcernsOthers(const Line& line, uint32_t core, uint32_t first, uint32_t last, bool writes);
  static void NoteWords(Line& line, uint32_t core, uint32_t first, uint32_t last, bool writes);
  void Fetch(uint32_t core, Line& line, uint64_t number, bool writes, Event& event);
  void Insert(uint32_t core, Line& line, uint64_t number);

  const uint32_t cores_;
  const CacheShape shape_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  // Pages that were asked for last, by their numbers' lowest bits.
  struct Recent {
    uint64_t number = UINT64_MAX;
    Page* page = nullptr;
  };
  std::array<Recent, 1024> recent_{};
  std::vector<Line*> tags_;  // by core, set and way: the line there, which may have been invalidated; or nullptr
  std::minstd_rand random_;
};

}  // namespace dbx::lines
