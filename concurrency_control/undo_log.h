// Before-images of a transaction's in-place changes; undone backwards when it aborts. Owned by one worker; its memory
// is kept from one transaction to the next.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace dbx {

class UndoLog {
 public:
  UndoLog() : bytes_(kInitialBytes) {}

  void Clear() { used_ = 0; }

  // The sink of TupleWriter.
  void BeforeChange(std::byte* at, size_t length) {
    const size_t need = length + sizeof(Entry);
    if (used_ + need > bytes_.size()) bytes_.resize(2 * (used_ + need));
    std::memcpy(bytes_.data() + used_, at, length);
    const Entry entry{at, length};
    std::memcpy(bytes_.data() + used_ + length, &entry, sizeof entry);
    used_ += need;
  }

  // Calls visit(at, before, length) for each change, the last one first; `before` has the bytes that were at `at`.
  void ForEach(auto&& visit) const {
    for (size_t end = used_; end > 0;) {
      Entry entry;
      std::memcpy(&entry, bytes_.data() + end - sizeof entry, sizeof entry);
      end -= sizeof entry + entry.length;
      visit(entry.at, bytes_.data() + end, entry.length);
    }
  }

  void Undo() {
    ForEach([](std::byte* at, const std::byte* before, size_t length) { std::memcpy(at, before, length); });
    Clear();
  }

 private:
  static constexpr size_t kInitialBytes = 64 << 10;
  struct Entry {
    std::byte* at;
    size_t length;
  };
  std::vector<std::byte> bytes_;
  size_t used_ = 0;
};

}  // namespace dbx
