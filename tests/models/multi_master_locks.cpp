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
  link.messages[link.count++] = message;
}

// The locks of transactions that have ended go; what they leave is in the after-list.
void World::Drop(RowLocks& locks, uint8_t (&after)[kMasters], uint8_t ended) const {
  for (size_t row = 0; row < kRows; ++row) {
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
  if (!Has(Fault::kReleasedBeforeFlush)) Flush(m);
  DropEnded(m, page);
  Local& local = s.masters[m].pages[page];
  Message message = {Message::kRelease, static_cast<uint8_t>(page), local.mode, local.generation, local.copy.lsn, {}, 0,
                     local.locks};
  std::copy(std::begin(local.after), std::end(local.after), message.after);
  local.mode = local.generation = local.reclaimed = local.fresh = 0;
  Send(s.to_glm[m], message);
}

void World::DeliverToMaster(size_t m, const Message& message) {
  if (message.kind == Message::kGrant) return OnGrant(m, message);
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
  for (size_t row = 0; row < kRows; ++row) {
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
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t t = 0; t < kTxns; ++t) {
        const uint8_t sent = message.locks.ModeOf(row, t);
        if (sent != 0 || s.txns[t].master == m) page.locks.Set(row, t, sent);
      }
    }
  }
  RaiseAll(page.after, message.after);
  Grant(message.page);
}

// Grants in the order of the requests; the first that cannot be granted has conflicting holders reclaimed.
void World::Grant(size_t at) {
  Global& page = s.pages[at];
  Drop(page.locks, page.after, s.ended);
  while (page.count > 0) {
    const Request first = page.queue[0];
    bool can = true;
    for (size_t k = 0; k < kMasters; ++k) {
      if (page.modes[k] == 0) continue;
      const bool compatible = k == first.master ? Has(Fault::kNoGenerations) : !Conflict(first.mode, page.modes[k]);
      can &= compatible && s.masters[k].recovered != 0;
    }
    Message message = {Message::kGrant, static_cast<uint8_t>(at), first.mode, first.generation, page.lsn, {}, 0,
                       page.locks};
    if (!can) {
      message = {Message::kReclaim, static_cast<uint8_t>(at), 0, 0, {}, {}, 0, {}};
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
