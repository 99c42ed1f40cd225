// A mini-transaction: changes of a few pages that take effect at once, in one PAGES record, or not at all.
//
// It changes nothing before it holds all its pages: changes are collected, and Submit writes and applies them. If it is
// destroyed or lets go before, it has changed nothing.
//
// No deadlocks: it waits for a page while it holds none, or while that page is right of or below the one that it pinned
// last (readers and writers of B-link trees need no other order). Pages of its own making do not count, as no other
// thread waits for them. In any other order Pin returns null where it would have to wait; the caller then lets go of
// all and begins anew.
//
// Threads: one.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <span>
#include <vector>

#include "multi_master/page/page_source.h"

namespace dbx::mm {

class MiniTransaction {
 public:
  explicit MiniTransaction(PageSource& source) : source_(&source) {}
  MiniTransaction(MiniTransaction&& other) noexcept;
  MiniTransaction& operator=(MiniTransaction&& other) noexcept;
  ~MiniTransaction() { LetGo(); }

  PageSource& source() const { return *source_; }

  // Null: it would wait against the order above, or the source has no such page. A page is pinned once; a shared pin is
  // not raised to an exclusive one.
  PageFrame* Pin(PageId page, LockMode mode);
  // A page of PageSource::NewPage; before all others, as it may take a message.
  PageFrame& PinNew(PageId page);
  // Of a page that it does not change.
  void Unpin(PageFrame& frame);

  // The bytes that `what` refers to stay valid until Submit returns. The frame is pinned exclusively.
  void Add(PageFrame& frame, const Change& what);
  // Of one change alone: Add and Submit, without a copy.
  void SubmitOne(PageFrame& frame, const Change& what);
  // Writes the record and applies the changes. The pages stay pinned, so that the caller can do more that must not be
  // seen apart from the changes.
  void Submit();
  // Unpins all. Changes that were added but not submitted are void.
  void LetGo();

 private:
  struct Pinned {
    PageFrame* frame;
    LockMode mode;
    bool is_new;
  };
  Pinned& PinOf(const PageFrame& frame);
  bool MayWaitFor(PageId page) const;

  PageSource* source_;
  void Submit(std::span<PageChange> changes);

  boost::container::small_vector<Pinned, 4> pinned_;
  std::vector<PageChange> changes_;
};

}  // namespace dbx::mm
