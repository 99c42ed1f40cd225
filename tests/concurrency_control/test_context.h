// What the procedures of directed tests see of a transaction and of a tuple: the contexts of benchmarks/txn_context.h
// behind virtual functions. A test is then compiled once, and a pair's transaction once per file, instead of every test
// with every pair.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "base/outcome.h"
#include "base/types.h"
#include "storage/scan_order.h"
#include "storage/table.h"

namespace dbx::testing {

// Columns are named by their byte offset.
class TestTuple {
 public:
  template <class T>
  T GetAt(size_t offset_bytes) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    CopyAt(offset_bytes, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  template <class T>
  void SetAt(size_t offset_bytes, const std::type_identity_t<T>& value) {
    static_assert(sizeof(T) == sizeof(uint64_t) || sizeof(T) == 1 || sizeof(T) == kLongBytes);
    SetBytesAt(offset_bytes, std::as_bytes(std::span(&value, 1)));
  }
  virtual void CopyAt(size_t offset_bytes, std::span<std::byte> to) const = 0;

  // A column may have a word, a byte, or so many.
  static constexpr size_t kLongBytes = 150;

 protected:
  ~TestTuple() = default;
  virtual void SetBytesAt(size_t offset_bytes, std::span<const std::byte> bytes) = 0;
};

// Of any of the tuples of storage/tuple.h; one that can only be read is never set.
template <class Tuple>
class TestTupleOf final : public TestTuple {
 public:
  explicit TestTupleOf(Tuple& tuple) : tuple_(tuple) {}
  void CopyAt(size_t offset_bytes, std::span<std::byte> to) const override { tuple_.CopyAt(offset_bytes, to); }

 private:
  void SetBytesAt(size_t offset_bytes, std::span<const std::byte> bytes) override {
    if (bytes.size() == 1) return Set<uint8_t>(offset_bytes, bytes);
    if (bytes.size() == sizeof(uint64_t)) return Set<uint64_t>(offset_bytes, bytes);
    Set<std::array<std::byte, kLongBytes>>(offset_bytes, bytes);
  }
  template <class T>
  void Set([[maybe_unused]] size_t offset_bytes, std::span<const std::byte> bytes) {
    T value;
    CHECK(bytes.size() == sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    if constexpr (requires { tuple_.template SetAt<T>(offset_bytes, value); }) {
      tuple_.template SetAt<T>(offset_bytes, value);
    } else {
      CHECK(false);
    }
  }
  Tuple& tuple_;
};

class TestContext {
 public:
  using Visit = std::function<void(const TestTuple&)>;
  using Change = std::function<void(TestTuple&)>;
  using ScanVisit = std::function<bool(Key, const TestTuple&)>;

  virtual Outcome Read(Table& table, Key key, const Visit& visit) = 0;
  virtual Outcome Update(Table& table, Key key, const Change& change) = 0;
  virtual Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) = 0;
  virtual Outcome Delete(Table& table, Key key) = 0;
  virtual Outcome Scan(Table& table, Key low, Key high, ScanOrder order, const ScanVisit& visit) = 0;

 protected:
  ~TestContext() = default;
};

template <class Context>
class TestContextOf final : public TestContext {
 public:
  explicit TestContextOf(Context& context) : context_(context) {}

  Outcome Read(Table& table, Key key, const Visit& visit) override {
    return context_.Read(table, key, [&](const auto& tuple) { visit(TestTupleOf(tuple)); });
  }
  Outcome Update(Table& table, Key key, const Change& change) override {
    return context_.Update(table, key, [&](auto& tuple) {
      TestTupleOf erased(tuple);
      change(erased);
    });
  }
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) override {
    return context_.Insert(table, key, tuple);
  }
  Outcome Delete(Table& table, Key key) override { return context_.Delete(table, key); }
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, const ScanVisit& visit) override {
    return context_.Scan(table, low, high, order,
                         [&](Key key, const auto& tuple) { return visit(key, TestTupleOf(tuple)); });
  }

 private:
  Context& context_;
};

}  // namespace dbx::testing
