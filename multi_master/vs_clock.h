// Vector-scalar clocks: a master's logical clock, of which most messages carry one element (Taurus MM, section 4).
//
// Each master i has a vector whose own element is its largest. Page records, page locks and ENDs carry the own element
// alone, a scalar; LFBs, which end each flush of a log, carry a vector. Four rules, in the numbers of the paper:
//
//   VS3  a page record or an END     own += 1; its time
//   VS4  a page lock is granted      own = max(own, time of the page's last change) + 1
//   VS1  an LFB is sent              own += 1; its stamp is max(clock, after), with the own element own
//   VS2  an LFB of k is applied      all others = max; own = max(all, own) + 1
//
// The paper orders LFBs by the clock alone, so one could be applied before its cause (multi_master.md, section 7): a
// grant tells its receiver a scalar only. Hence two more vectors: `after`, what the master's next LFB builds upon, and
// `applied`, how far each log, its own included, has been applied here. Only applied LFBs move the latter.
//
// Times of two masters are compared only where both are times of one page, or of one log: the bare type has no `<`.
//
// Threads: none of their own; a VsClock belongs to the latch of its master's flush buffer, as a record's time and its
// place in the log must be taken together.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "multi_master/names.h"

namespace dbx::mm {

class VsTime {
 public:
  constexpr VsTime() = default;
  constexpr explicit VsTime(uint64_t value) : value_(value) {}
  constexpr uint64_t value() const { return value_; }
  friend constexpr bool operator==(VsTime, VsTime) = default;

 private:
  uint64_t value_ = 0;  // 0: before all
};

// The version of a page: the master that changed it last, and the change's time. Times of one page ascend, whichever
// masters write it (VS4).
struct PageLsn {
  MasterId master;
  VsTime time;  // 0: as it was loaded

  bool IsOlderThan(const PageLsn& other) const { return time.value() < other.time.value(); }
  friend constexpr bool operator==(const PageLsn&, const PageLsn&) = default;
};

// For each master a time in its log. 0: nothing of it.
class VsVector {
 public:
  VsTime of(MasterId master) const { return times_[master.value()]; }
  void Set(MasterId master, VsTime time) { times_[master.value()] = time; }
  // The log of `master` up to `time` is in this.
  bool Covers(MasterId master, VsTime time) const { return times_[master.value()].value() >= time.value(); }
  bool Covers(const VsVector& other) const {
    for (uint32_t i = 0; i < kMastersMax; ++i) {
      if (!Covers(MasterId(static_cast<uint8_t>(i)), other.times_[i])) return false;
    }
    return true;
  }
  void RaiseTo(MasterId master, VsTime time) {
    if (!Covers(master, time)) times_[master.value()] = time;
  }
  void RaiseTo(const VsVector& other) {
    for (uint32_t i = 0; i < kMastersMax; ++i) RaiseTo(MasterId(static_cast<uint8_t>(i)), other.times_[i]);
  }
  // Elements that `other` covers become 0.
  void DropCoveredBy(const VsVector& other) {
    for (uint32_t i = 0; i < kMastersMax; ++i) {
      if (other.Covers(MasterId(static_cast<uint8_t>(i)), times_[i])) times_[i] = {};
    }
  }
  void LowerTo(const VsVector& other) {
    for (uint32_t i = 0; i < kMastersMax; ++i) {
      if (other.times_[i].value() < times_[i].value()) times_[i] = other.times_[i];
    }
  }
  bool IsEmpty() const { return *this == VsVector(); }
  friend bool operator==(const VsVector&, const VsVector&) = default;

 private:
  std::array<VsTime, kMastersMax> times_;
};

// The log position, of each master, behind the ENDs of transactions whose row locks were dropped from a page, and of
// what else the page's next reader must see applied before it may take an own version for valid.
using AfterList = VsVector;

// The end of a flush of one master's log.
struct LfbStamp {
  MasterId master;
  VsVector stamp;
  VsTime predecessor;  // the own element of this log's LFB before it; 0: there is none

  VsTime time() const { return stamp.of(master); }
};

// What one master sees at one moment, as a version of the database: `tv` is how far each log has been applied, with the
// master's own time for its own log. `applied` has how far that log has been read back instead.
struct ReadView {
  VsVector tv;
  VsVector applied;
};

class VsClock {
 public:
  explicit VsClock(MasterId self) : self_(self) {}

  MasterId self() const { return self_; }
  VsTime now() const { return clock_.of(self_); }
  const VsVector& applied() const { return applied_; }
  ReadView View() const {
    ReadView view{applied_, applied_};
    view.tv.Set(self_, now());
    return view;
  }
  // Of the last LFB that was stamped here.
  VsTime last_lfb() const { return last_lfb_; }

  // VS3. The time of a page record or an END.
  VsTime Tick() {
    clock_.Set(self_, VsTime(now().value() + 1));
    return now();
  }

  // VS4. A page lock was granted: its page's version, and what the page's dropped row locks came from.
  void OnGrant(const PageLsn& page, const AfterList& after) {
    RaiseOwnAbove(page.time);
    if (page.time.value() > 0) after_.RaiseTo(page.master, page.time);
    after_.RaiseTo(after);
  }

  // VS1. The stamp of the LFB that ends a flush.
  LfbStamp StampLfb() {
    Tick();
    LfbStamp lfb{self_, clock_, last_lfb_};
    lfb.stamp.RaiseTo(after_);
    lfb.stamp.Set(self_, now());
    last_lfb_ = now();
    return lfb;
  }

  // The next LFB of its log, and all that it builds upon is applied. This master's own log counts as any other: a cause
  // may have come back by way of it.
  bool MayApply(const LfbStamp& lfb) const {
    if (applied_.of(lfb.master) != lfb.predecessor) return false;
    VsVector others = lfb.stamp;
    others.Set(lfb.master, {});
    return applied_.Covers(others);
  }

  // VS2. The LFB's records are applied here.
  void OnApplied(const LfbStamp& lfb) {
    CHECK(MayApply(lfb));
    applied_.Set(lfb.master, lfb.time());
    if (lfb.master == self_) return;
    uint64_t largest = now().value();
    for (uint8_t i = 0; i < kMastersMax; ++i) {
      const MasterId master(i);
      if (master != self_) clock_.RaiseTo(master, lfb.stamp.of(master));
      if (lfb.stamp.of(master).value() > largest) largest = lfb.stamp.of(master).value();
    }
    clock_.Set(self_, VsTime(largest + 1));
  }

  // A master that comes back: above all that its earlier self stamped (`seal`) and all page versions, with the logs
  // applied up to `applied`.
  void Rejoin(VsTime above, const VsVector& applied, VsTime last_lfb) {
    RaiseOwnAbove(above);
    applied_ = applied;
    last_lfb_ = last_lfb;
  }

 private:
  void RaiseOwnAbove(VsTime time) {
    const uint64_t own = now().value();
    clock_.Set(self_, VsTime((own > time.value() ? own : time.value()) + 1));
  }

  const MasterId self_;
  VsVector clock_;
  VsVector after_;
  VsVector applied_;
  VsTime last_lfb_;
};

}  // namespace dbx::mm
