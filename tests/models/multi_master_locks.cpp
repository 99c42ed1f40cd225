// Page locks that carry lists of row locks, in the model of Taurus MM: the GLM, and what masters do with its messages.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {
namespace {

void RaiseAll(uint8_t (&to)[kMasters], const uint8_t (&from)[kMasters]) {
  for (size_t k = 0; k < kMasters; ++k) to[k] = std::max(to[k], from[k]);
}

}  // namespace

void World::Send(Link& link, const Message& message) {
  CHECK(link.count < kMessagesMax);
  Message& sent = link.messages[link.count++] = message;
  const bool is_of_glm = std::any_of(std::begin(s.to_master), std::end(s.to_master),
                                     [&link](const Link& other) { return &other == &link; });
  sent.term = is_of_glm ? s.term : s.masters[&link - s.to_glm].term;
}

// The locks of transactions that have ended go; what they leave is in the after-list.
void World::Drop(RowLocks& locks, uint8_t (&after)[kMasters], uint8_t ended) const {
  for (size_t row = 0; row < kLocks; ++row) {
    for (size_t t = 0; t < kTxns; ++t) {
      if (locks.ModeOf(row, t) == 0 || (ended & BitOf(t)) == 0) continue;
      locks.Set(row, t, 0);
      uint8_t& time = after[s.ends[t].master];
      time = std::max(time, s.ends[t].time);
    }
  }
}

void World::DropEnded(size_t m, size_t page) {
  Local& local = s.masters[m].pages[page];
  Drop(local.locks, local.after, s.masters[m].ended);
}

void World::DropEnded(size_t m) {
  for (size_t page = 0; page < kPages; ++page) DropEnded(m, page);
}

// ---- A master ----

void World::Release(size_t m, size_t page) {
  s.masters[m].pages[page].releasing = 1;
  if (Has(Fault::kListAfterFlush)) {
    Flush(m);
  } else {
    BuildRelease(m, page);
  }
  if (!scenario_.slow_releases) SendRelease(m, page);
}

// The list is complete before the flush: an END that is appended later may not be durable when it is sent. With page P
// go the lists of page R, if P was split under this grant and R is not released yet.
void World::BuildRelease(size_t m, size_t page) {
  DropEnded(m, page);
  Local& local = s.masters[m].pages[page];
  const Local& right = s.masters[m].pages[kRight];
  Message& message = local.release;
  message = {};
  message.kind = Message::kRelease, message.page = static_cast<uint8_t>(page);
  message.mode = local.mode, message.generation = local.generation;
  message.lsn = local.copy.lsn, message.locks = local.locks;
  std::copy(std::begin(local.after), std::end(local.after), message.after);
  const bool is_held = local.split != 0 && right.mode == kExclusive && right.generation == local.split;
  if (!is_held || Has(Fault::kSplitListNotSent) || (right.releasing != 0 && Has(Fault::kReleasingNotSent))) return;
  DropEnded(m, kRight);
  message.split = local.split, message.split_locks = right.locks;
  std::copy(std::begin(right.after), std::end(right.after), message.split_after);
}

void World::SendRelease(size_t m, size_t page) {
  if (Has(Fault::kListAfterFlush)) {
    BuildRelease(m, page);
  } else if (!Has(Fault::kReleasedBeforeFlush)) {
    Flush(m);
  }
  Local& local = s.masters[m].pages[page];
  local.mode = local.generation = local.reclaimed = local.fresh = local.releasing = local.split = 0;
  Send(s.to_glm[m], local.release);
  local.release = {};
}

void World::DeliverToMaster(size_t m, const Message& message) {
  if (message.kind == Message::kGrant) return OnGrant(m, message);
  if (message.kind == Message::kEnds) return OnEndsTold(m, message.ends);
  Local& local = s.masters[m].pages[message.page];
  // A message of an older generation is ignored; one may also overtake its grant.
  const bool held = local.mode != 0 && (local.generation == message.generation || Has(Fault::kNoGenerations));
  const bool wanted = local.want_mode != 0 && local.want_generation == message.generation;
  if (held || wanted) local.reclaimed = message.generation;
}

// VS4, and what the next LFB builds upon.
void World::OnGrant(size_t m, const Message& message) {
  Master& my = s.masters[m];
  Local& local = my.pages[message.page];
  local.want_mode = local.want_generation = 0;
  local.mode = message.mode, local.generation = message.generation, local.fresh = 1;
  if (!Has(Fault::kNoVs4)) my.clock[m] = static_cast<uint8_t>(std::max(my.clock[m], message.lsn.time) + 1);
  for (size_t row = 0; row < kLocks; ++row) {
    for (size_t t = 0; t < kTxns; ++t) {
      const bool own = s.txns[t].master == m && local.locks.ModeOf(row, t) != 0;
      const uint8_t sent = message.locks.ModeOf(row, t);
      if (!own || sent != 0) local.locks.Set(row, t, sent);
    }
  }
  std::copy(std::begin(message.after), std::end(message.after), local.after);
  DropEnded(m, message.page);
  if (local.copy.there == 0 || local.copy.lsn != message.lsn) {
    const uint8_t count = FindVersion(message.page, message.lsn);
    if (count == kNone) return Fail(Failure::kVersionMissing);
    local.copy = VersionAt(message.page, count);
  }
  if (message.lsn.master != kNone) {
    AddPast(my.past, message.lsn.master, message.lsn.time, true);
    uint8_t& time = my.after[message.lsn.master];
    if (!Has(Fault::kPrintedScalarGrant)) time = std::max(time, message.lsn.time);
  }
  for (size_t k = 0; k < kMasters; ++k) {
    if (message.after[k] != 0) AddPast(my.past, k, message.after[k], false);
  }
  if (!Has(Fault::kPrintedNoAfters)) RaiseAll(my.after, message.after);
}

// Their LFBs may not be applied here. What transactions do from now on builds upon them.
void World::OnEndsTold(size_t m, uint8_t ends) {
  Master& my = s.masters[m];
  for (size_t t = 0; t < kTxns; ++t) {
    if ((ends & BitOf(t)) == 0 || s.ends[t].time == 0) continue;
    AddPast(my.past, s.ends[t].master, s.ends[t].time, false);
    uint8_t& time = my.after[s.ends[t].master];
    if (!Has(Fault::kToldNotAfter)) time = std::max(time, s.ends[t].time);
  }
  my.ended |= ends;
  DropEnded(m);
}

// ENDs that are durable and that the GLM does not know.
uint8_t World::EndsToTell(size_t m) const {
  uint8_t ends = 0;
  for (size_t t = 0; t < kTxns; ++t) {
    const Txn& txn = s.txns[t];
    const bool durable = txn.step == Txn::kAcked || txn.step == Txn::kAborted || Has(Fault::kEndToldEarly);
    if (txn.master == m && durable) ends |= BitOf(t);
  }
  return ends & s.masters[m].ended & static_cast<uint8_t>(~s.masters[m].told);
}

// ---- The GLM ----

void World::DeliverToGlm(size_t m, const Message& message) {
  if (message.kind == Message::kRequest) {
    Global& page = s.pages[message.page];
    CHECK(page.count < kRequestsMax);
    page.queue[page.count++] = {static_cast<uint8_t>(m), message.mode, message.generation};
    Grant(message.page);
  } else if (message.kind == Message::kRelease) {
    OnRelease(m, message);
  } else {
    s.ended |= message.ends;
    for (size_t k = 0; k < scenario_.masters && scenario_.tells; ++k) {
      if (k != m && s.masters[k].alive != 0 && s.masters[k].term == s.term) Send(s.to_master[k], message);
    }
    for (size_t page = 0; page < kPages; ++page) Grant(page);
  }
}

// Under an exclusive page lock the list replaces the GLM's; under a shared one it replaces the part of the sender's own
// transactions.
void World::OnRelease(size_t m, const Message& message) {
  Global& page = s.pages[message.page];
  const bool is_it = page.generations[m] == message.generation || Has(Fault::kNoGenerations);
  if (page.modes[m] == 0 || !is_it) return Fail(Failure::kReleaseNotHeld);
  page.modes[m] = page.generations[m] = page.asked[m] = 0;
  if (message.lsn.time > page.lsn.time) page.lsn = message.lsn;
  if (message.mode == kExclusive || Has(Fault::kPrintedSharedRelease)) {
    page.locks = message.locks;
  } else {
    for (size_t row = 0; row < kLocks; ++row) {
      for (size_t t = 0; t < kTxns; ++t) {
        const uint8_t sent = message.locks.ModeOf(row, t);
        if (sent != 0 || s.txns[t].master == m) page.locks.Set(row, t, sent);
      }
    }
  }
  RaiseAll(page.after, message.after);
  Global& right = s.pages[kRight];
  if (message.split != 0 && right.modes[m] == kExclusive && right.generations[m] == message.split) {
    right.locks = message.split_locks;
    RaiseAll(right.after, message.split_after);
  }
  Grant(message.page);
}

// Grants in the order of the requests; the first that cannot be granted has conflicting holders reclaimed.
void World::Grant(size_t at) {
  Global& page = s.pages[at];
  Drop(page.locks, page.after, s.ended);
  if (s.collecting != 0 && !Has(Fault::kGrantsBeforeReports)) return;
  while (page.count > 0) {
    const Request first = page.queue[0];
    bool can = true;
    for (size_t k = 0; k < kMasters; ++k) {
      if (page.modes[k] == 0) continue;
      const bool compatible = k == first.master ? Has(Fault::kNoGenerations) : !Conflict(first.mode, page.modes[k]);
      can &= compatible && s.masters[k].recovered != 0;
    }
    Message message = {};
    message.kind = Message::kGrant, message.page = static_cast<uint8_t>(at);
    message.mode = first.mode, message.generation = first.generation;
    message.lsn = page.lsn, message.locks = page.locks;
    if (!can) {
      message = {};
      message.kind = Message::kReclaim, message.page = static_cast<uint8_t>(at);
      for (size_t k = 0; k < kMasters; ++k) {
        if (page.modes[k] == 0 || k == first.master || !Conflict(first.mode, page.modes[k])) continue;
        if (page.asked[k] == page.generations[k] || s.masters[k].alive == 0) continue;
        page.asked[k] = message.generation = page.generations[k];
        Send(s.to_master[k], message);
      }
      return;
    }
    std::copy(std::begin(page.after), std::end(page.after), message.after);
    std::copy(page.queue + 1, page.queue + page.count, page.queue);
    page.queue[--page.count] = {};
    page.modes[first.master] = first.mode, page.generations[first.master] = first.generation;
    Send(s.to_master[first.master], message);
    if (first.mode == kExclusive && Has(Fault::kGlmForgetsList)) page.locks = {};
  }
}

}  // namespace dbx::models::multi_master
