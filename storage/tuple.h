// How a stored procedure sees a tuple: typed access to the columns of one row image.
//
// A table's tuple is a plain struct (TPC-C) or a run of equal fields (YCSB). Columns are named by a
// member pointer of that struct or by a byte offset. Three models:
//   TupleReader      a stable image: the row under a lock, a private copy, a row during replay
//   RacyTupleReader  a row that others may overwrite meanwhile; the concurrency control validates
//                    the read afterwards and, if it was torn, runs the visitor again
//   TupleWriter<S>   a stable image that is being changed; S learns of every change before it is made
//                    (undo under two-phase locking, the list of dirty ranges under OCC)
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/racy.h"

namespace dbx {

// The byte offset of a member within a plain struct. A constant once optimised.
template <class S, class T>
size_t OffsetOf(T S::*member) {
  alignas(S) static constexpr std::byte kNowhere[sizeof(S)]{};
  const auto* object = reinterpret_cast<const S*>(kNowhere);
  return static_cast<size_t>(reinterpret_cast<const std::byte*>(&(object->*member)) - kNowhere);
}

class TupleReader {
 public:
  explicit TupleReader(const std::byte* data) : data_(data) {}

  template <class T>
  T GetAt(size_t offset_bytes) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, data_ + offset_bytes, sizeof(T));
    return value;
  }
  template <class S, class T>
  T Get(T S::*member) const {
    return GetAt<T>(OffsetOf(member));
  }
  void CopyAt(size_t offset_bytes, std::span<std::byte> to) const {
    std::memcpy(to.data(), data_ + offset_bytes, to.size());
  }

 private:
  const std::byte* data_;
};

class RacyTupleReader {
 public:
  explicit RacyTupleReader(const std::byte* data) : data_(data) {}

  template <class T>
  T GetAt(size_t offset_bytes) const {
    return RacyLoad<T>(data_ + offset_bytes);
  }
  template <class S, class T>
  T Get(T S::*member) const {
    return GetAt<T>(OffsetOf(member));
  }
  void CopyAt(size_t offset_bytes, std::span<std::byte> to) const {
    RacyCopy(to.data(), data_ + offset_bytes, to.size());
  }

 private:
  const std::byte* data_;
};

// The sink of changes that are neither undone nor logged.
struct NoSink {
  void BeforeChange(std::byte*, size_t) const {}
};

// `Sink` has BeforeChange(std::byte* at, size_t bytes).
template <class Sink>
class TupleWriter {
 public:
  TupleWriter(std::byte* data, Sink& sink) : data_(data), sink_(sink) {}

  template <class T>
  T GetAt(size_t offset_bytes) const {
    return TupleReader(data_).GetAt<T>(offset_bytes);
  }
  template <class S, class T>
  T Get(T S::*member) const {
    return GetAt<T>(OffsetOf(member));
  }
  void CopyAt(size_t offset_bytes, std::span<std::byte> to) const { TupleReader(data_).CopyAt(offset_bytes, to); }
  template <class T>
  void SetAt(size_t offset_bytes, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    sink_.BeforeChange(data_ + offset_bytes, sizeof(T));
    std::memcpy(data_ + offset_bytes, &value, sizeof(T));
  }
  template <class S, class T>
  void Set(T S::*member, const std::type_identity_t<T>& value) {
    SetAt<T>(OffsetOf(member), value);
  }

 private:
  std::byte* data_;
  Sink& sink_;
};

}  // namespace dbx
