// Statements that read without locks, as of TV (Taurus MM, sections 5.1.3 and 5.3; read committed, per statement).
//
//   TV -> pages as of TV -> rows as of TV -> visit
//                 | no version that may be read: the statement is invalid, and runs again with locks
//
// One Read or one Scan is one statement. Of a row it sees the image if the writer's END is covered by TV, else the
// committed image before that writer; what its own transaction wrote it sees in any case. So it sees all of a
// transaction or nothing, and no state between. It is invalid where a version that this master made last builds upon
// more than TV covers, or is newer than TV (MasterPages::Judge); where a page has no version at TV; where TV lacks a
// split that moved rows which this master has changed since (MasterPages::splits_needed); and where the writer of a row
// is ending at this very moment.
//
// Rows are handed on when the statement is known to be valid. Trees are descended through right links wherever the
// versions of two levels differ (paged_tree.h).
//
// With strict reads a transaction's first statement waits until its master has applied all that was durable anywhere
// when it came (strict_reads.h).
//
// Threads: one; it belongs to a transaction.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "multi_master/lock/local_locks.h"
#include "multi_master/master/master_pages.h"
#include "multi_master/master/read_views.h"
#include "multi_master/master/strict_reads.h"
#include "multi_master/page/paged_tree.h"
#include "storage/tuple.h"

namespace dbx::mm {

// Pages as of a view, for trees that are only read. Pin returns null where a page has no version that may be read.
class VersionedPages final : public PageSource {
 public:
  explicit VersionedPages(MasterPages& pages) : pages_(pages) {}

  void SetView(const ReadView* view) { view_ = view; }
  const ReadView& view() const { return *view_; }
  // False: a row may be read where it was before a split.
  bool CoversSplits() const { return view_->tv.Covers(pages_.splits_needed()); }

  PageFrame* Pin(PageId page, LockMode mode, bool may_wait) override;
  PageFrame* PinNew(PageId) override;
  void Unpin(PageFrame& frame, LockMode mode) override;
  PageId NewPage() override;
  void GiveBack(PageId) override {}
  Lsn EndMini(std::span<PageChange>) override;

 private:
  MasterPages& pages_;
  const ReadView* view_ = nullptr;
  std::vector<std::unique_ptr<PageFrame>> own_;
};

class VersionedReader {
 public:
  // `trees` of the master. `strict` may be null: reads are not strict.
  VersionedReader(const std::vector<std::unique_ptr<PagedTree>>& trees, MasterPages& pages, LocalLocks& locks,
                  ReadViews& views, StrictReads* strict);

  // A transaction begins.
  void OnBegin() { is_awaited_ = false; }

  // Calls see(image, is_present) for the row `key` as of now, a row that was never there as an absent one. False: the
  // statement was invalid, and nothing was called.
  bool Read(TableId table, Key key, const TxnName& reader, auto&& see) {
    const Statement statement(*this);
    if (!pages_.CoversSplits()) return statement.Fail();
    PinnedLeaf leaf = trees_[table.value()]->PinLeaf(key, LockMode::kShared);
    if (!leaf) return statement.Fail();
    const std::optional<RowView> row = leaf.Find(key);
    const RowVersion absent;
    const RowVersion* seen = row ? SeenOf(*row, reader) : &absent;
    if (seen == nullptr) return statement.Fail();
    see(seen->image, seen->present);
    return true;
  }

  // Collects the present rows from `low` to `high`. False: the statement was invalid.
  bool Scan(TableId table, Key low, Key high, const TxnName& reader);
  // Of the last Scan, by key.
  size_t rows() const { return keys_.size(); }
  Key KeyAt(size_t i) const { return keys_[i]; }
  const std::byte* ImageAt(size_t i) const { return images_.data() + starts_[i]; }

 private:
  // While this lives, the reader's pages are those of one TV.
  class Statement {
   public:
    explicit Statement(VersionedReader& reader) : use_(Ready(reader)), reader_(reader) {
      reader_.pages_.SetView(&use_.view());
    }
    ~Statement() { reader_.pages_.SetView(nullptr); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    bool Fail() const {
      reader_.views_.CountRerun();
      return false;
    }

   private:
    static ReadViews& Ready(VersionedReader& reader) {
      reader.AwaitStrict();
      return reader.views_;
    }

    const ReadViews::Use use_;
    VersionedReader& reader_;
  };

  void AwaitStrict();
  // Null: it cannot be told. Points into `row`.
  const RowVersion* SeenOf(const RowView& row, const TxnName& reader);
  bool CollectLeaf(const SlottedPage& leaf, Key low, Key high, const TxnName& reader);

  LocalLocks& locks_;
  ReadViews& views_;
  StrictReads* const strict_;
  VersionedPages pages_;
  std::vector<std::unique_ptr<PagedTree>> trees_;
  bool is_awaited_ = false;
  std::vector<Key> keys_;
  std::vector<size_t> starts_;
  std::vector<std::byte> images_;
};

}  // namespace dbx::mm
