#include "tests/multi_master/lock/lock_cluster.h"

#include <algorithm>

namespace dbx::mm {

struct LockCluster::Node : LocalLocks::Owner {
  Node(LockCluster& cluster, MasterId self)
      : world(cluster), clock(self), locks(std::make_unique<LocalLocks>(self, ClusterEpoch(1), *this)) {}

  void SendRequest(const PageRequest& request) override { Post(request); }
  void SendRelease(const PageRelease& release) override { Post(release); }
  void SendWaitReport(const WaitReport& report) override { Post(report); }
  void OnGrant(const PageLsn& lsn, const AfterList& after) override {
    clock.OnGrant(lsn, after);
    builds_upon.RaiseTo(after);
    if (lsn.time.value() > 0) builds_upon.RaiseTo(lsn.master, lsn.time);
  }
  void OnEndsTold(const AfterList& ends) override {
    clock.OnGrant({}, ends);
    builds_upon.RaiseTo(ends);
  }
  void FlushUntilDurable(VsTime time) override {
    EXPECT_LE(time.value(), clock.now().value());
    durable = clock.now();
  }
  void FetchPage(PageId page, const PageLsn& lsn) override {
    const PageTruth& truth = world.pages_[page];
    const PageLsn newest = truth.versions.empty() ? PageLsn() : truth.versions.back();
    EXPECT_EQ(newest.time.value(), lsn.time.value()) << "not the newest version of page " << page.value();
    EXPECT_GE(world.nodes_[lsn.master.value()]->durable.value(), lsn.time.value()) << "handed over before durable";
  }

  template <class M>
  void Post(const M& message) {
    if (alive) to_locks.push_back({M::kType, EncodeBody(message)});
  }

  LockCluster& world;
  VsClock clock;
  bool alive = true;
  bool holds = true;  // its pages are not free yet
  VsTime durable;
  VsVector applied;
  VsVector builds_upon;
  std::vector<Record> log;
  std::deque<Message> to_locks;
  std::deque<Message> from_locks;
  std::unique_ptr<LocalLocks> locks;
};

struct LockCluster::Actor {
  explicit Actor(Node& of) : node(of) {}

  Node& node;
  TxnName txn;
  bool runs = false;
  bool wrote = false;
  std::vector<RowLock> wanted;
  size_t next = 0;
  bool splits_next = false;
  PageId page;
  bool pinned = false;
  uint64_t stays = 0;  // steps for which the page stays pinned
  PageId right;
  std::unique_ptr<LocalLocks::PageTurn> turn;
  std::unique_ptr<LocalTxns::RowWait> wait;
};

LockCluster::LockCluster(uint64_t seed, const ClusterOptions& options)
    : random_(seed), options_(options), global_(*this), last_page_(options.pages) {
  for (uint8_t i = 0; i < options.masters; ++i) {
    nodes_.push_back(std::make_unique<Node>(*this, MasterId(i)));
    global_.AddMaster(MasterId(i));
    for (uint32_t slot = 0; slot < options.slots; ++slot) actors_.push_back(std::make_unique<Actor>(*nodes_.back()));
  }
  for (uint32_t i = 0; i < options.pages; ++i) {
    pages_[PageId(i + 1)] = {Key{i} * kKeysOfPage, Key{i + 1} * kKeysOfPage, {}};
  }
}
LockCluster::~LockCluster() = default;

void LockCluster::Send(MasterId to, MessageType type, std::vector<std::byte> body) {
  Node& node = *nodes_[to.value()];
  if (node.alive) node.from_locks.push_back({type, std::move(body)});
}

void LockCluster::Run() {
  for (uint32_t i = 0; i < options_.steps && !::testing::Test::HasFailure(); ++i) StepAny();
}

bool LockCluster::StepAny() {
  now_ += 20'000;
  Node& node = RandomLiveNode();
  switch (random_.Below(12)) {
    case 0:
    case 1:
      Deliver(node.to_locks, [&](const Message& m) { return global_.On(node.locks->self(), m.type, m.body); });
      break;
    case 2:
    case 3:
      Deliver(node.from_locks, [&](const Message& m) { return node.locks->On(m.type, m.body); });
      break;
    case 4:
      node.locks->ReleaseDue();
      break;
    case 5:
      if (random_.Below(4) == 0) node.durable = node.clock.now();
      Tell(node);
      break;
    case 6:
      if (random_.Below(4) == 0) node.locks->Evict(PageId(1 + random_.Below(last_page_)));
      UndoOne();
      if (dead_ && random_.Below(10) == 0) RecoverDead();
      if (options_.dies && !has_died_ && random_.Below(options_.steps / 20) == 0) Kill(node);
      break;
    default:
      Step(*actors_[random_.Below(actors_.size())]);
  }
  CheckHolders();
  return true;
}

bool LockCluster::Deliver(std::deque<Message>& link, auto&& receive) {
  if (link.empty()) return false;
  const size_t at = options_.overtakes ? random_.Below(link.size()) : 0;
  const Message message = std::move(link[at]);
  link.erase(link.begin() + static_cast<ptrdiff_t>(at));
  EXPECT_TRUE(receive(message)) << "refused a message of type " << message.type.value();
  return true;
}

void LockCluster::Tell(Node& node) {
  if (const auto news = node.locks->txns().TakeNews(node.durable, random_.Below(2) == 0)) node.Post(*news);
  if (random_.Below(4) != 0) return;
  // It applies all logs, and no TV in use is older.
  for (const auto& other : nodes_) node.applied.Set(other->locks->self(), other->durable);
  node.builds_upon.RaiseTo(node.applied);
  VsVector tv = node.applied;
  tv.Set(node.locks->self(), node.clock.now());
  node.Post(LeastTv{tv});
}

// ---- a transaction ----

void LockCluster::Step(Actor& actor) {
  if (!actor.node.alive) return;
  if (!actor.runs) {
    if (begins_) Begin(actor);
    return;
  }
  if (actor.wait) {
    const auto result = actor.wait->Poll(now_);
    if (!result) return;
    actor.wait.reset();
    if (*result == WaitResult::kLookAgain) return;
    EXPECT_EQ(*result, WaitResult::kVictim) << "a wait timed out";
    ++victims;
    return End(actor, false);
  }
  if (actor.turn) {
    if (!actor.turn->Poll()) return;
    actor.turn.reset();
    if (actor.splits_next) return Split(actor);
    actor.pinned = true;
    return OnPinned(actor);
  }
  if (actor.pinned) {
    if (actor.stays-- > 0) return;
    actor.pinned = false;
    return actor.node.locks->Unpin(actor.page);
  }
  LockNextRow(actor);
}

void LockCluster::Begin(Actor& actor) {
  actor.txn = actor.node.locks->txns().Begin(BeginTime(now_));
  actor.runs = true;
  actor.wrote = false;
  actor.wanted.clear();
  actor.next = 0;
  const Key keys = Key{options_.pages} * kKeysOfPage;
  for (uint64_t i = 1 + random_.Below(4); i > 0; --i) {
    const Key key = random_.Below(keys);
    switch (random_.Below(6)) {
      case 0:
      case 1:
        actor.wanted.push_back(RowLock::Shared(actor.txn, key));
        break;
      case 2:
        actor.wanted.push_back(RowLock::Gap(actor.txn, key, std::min<Key>(key + random_.Below(3), keys - 1)));
        break;
      case 3:
        actor.wanted.push_back(RowLock::Insert(actor.txn, key));
        actor.wanted.push_back(RowLock::Exclusive(actor.txn, key));
        break;
      default:
        actor.wanted.push_back(RowLock::Exclusive(actor.txn, key));
    }
  }
}

void LockCluster::LockNextRow(Actor& actor) {
  if (actor.next == actor.wanted.size()) return End(actor, random_.Below(8) != 0);
  actor.splits_next = options_.splits && last_page_ < kPagesMax && random_.Below(60) == 0;
  const RowLock& lock = actor.wanted[actor.next];
  actor.page = PageOfKey(lock.low);
  actor.right = PageId();
  const LockMode mode = actor.splits_next ? LockMode::kExclusive : PageModeFor(lock.kind);
  actor.turn = std::make_unique<LocalLocks::PageTurn>(*actor.node.locks, actor.page, mode);
}

void LockCluster::OnPinned(Actor& actor) {
  RowLock& wanted = actor.wanted[actor.next];
  const PageTruth& truth = pages_[actor.page];
  actor.stays = random_.Below(3);
  if (wanted.low < truth.low || wanted.low >= truth.end) return;  // it was split meanwhile: look for the key again
  RowLock lock = wanted;
  lock.high = std::min(lock.high, truth.end - 1);
  std::vector<TxnName> blockers = actor.node.locks->TryLockRow(actor.page, lock);
  if (!blockers.empty()) {
    ++row_waits;
    actor.pinned = false;
    actor.node.locks->Unpin(actor.page);
    actor.wait = std::make_unique<LocalTxns::RowWait>(actor.node.locks->txns(), actor.txn, blockers, now_);
    return;
  }
  OnGranted(actor, lock);
  ++actor.next;
  if (lock.kind == RowLockKind::kGap && lock.high < wanted.high) {
    actor.wanted.push_back(RowLock::Gap(actor.txn, lock.high + 1, wanted.high));
  }
  if (lock.kind == RowLockKind::kInsertIntention) return OnPinned(actor);  // its X lock, within the same pin
  if (lock.kind == RowLockKind::kExclusive) Write(actor, lock.low);
}

void LockCluster::Split(Actor& actor) {
  LocalLocks& locks = *actor.node.locks;
  PageTruth& left = pages_[actor.page];
  if (actor.right == PageId()) {
    if (left.end - left.low < 2 || last_page_ == kPagesMax) {
      actor.splits_next = false;
      return locks.Unpin(actor.page);
    }
    actor.right = PageId(++last_page_);
    actor.turn = std::make_unique<LocalLocks::PageTurn>(locks, actor.right, LockMode::kExclusive);
    return;
  }
  actor.splits_next = false;
  ++splits;
  const Key separator = left.low + 1 + random_.Below(left.end - left.low - 1);
  locks.SplitLocks(actor.page, separator, actor.right);
  pages_[actor.right] = {separator, left.end, {}};
  left.end = separator;
  for (const PageId page : {actor.page, actor.right}) {
    const PageLsn lsn{locks.self(), actor.node.clock.Tick()};
    locks.SetLsn(page, lsn);
    pages_[page].versions.push_back(lsn);
    actor.node.log.push_back({Record::Kind::kWrite, lsn.time, page, 0, {}, {}});
  }
  actor.node.log.back() = {Record::Kind::kSplit, actor.node.clock.now(), actor.page, separator, actor.right, {}};
  actor.node.durable = actor.node.clock.now();  // the oracle's tree has no torn splits
  locks.Unpin(actor.page);
  locks.Unpin(actor.right);
}

void LockCluster::Write(Actor& actor, Key key) {
  const PageLsn lsn{actor.node.locks->self(), actor.node.clock.Tick()};
  std::vector<PageLsn>& versions = pages_[actor.page].versions;
  EXPECT_TRUE(versions.empty() || versions.back().IsOlderThan(lsn)) << "times of a page ascend";
  if (::testing::Test::HasFailure()) return;
  versions.push_back(lsn);
  actor.node.locks->SetLsn(actor.page, lsn);
  actor.node.log.push_back({Record::Kind::kWrite, lsn.time, actor.page, key, {}, actor.txn});
  actor.wrote = true;
}

void LockCluster::End(Actor& actor, bool commit) {
  actor.runs = false;
  ++(commit ? commits : aborts);
  LocalLocks& locks = *actor.node.locks;
  if (!actor.wrote && locks.EndWithoutRecord(actor.txn)) return OnEnded(actor.txn, {locks.self(), VsTime()});
  const VsTime time = actor.node.clock.Tick();
  actor.node.log.push_back({Record::Kind::kEnd, time, {}, 0, {}, actor.txn});
  locks.End(actor.txn, time);
  OnEnded(actor.txn, {locks.self(), time});
}

// ---- a death ----

void LockCluster::Kill(Node& node) {
  has_died_ = true;
  node.alive = false;
  node.to_locks.clear();
  node.from_locks.clear();
  DeadMaster dead{node.locks->self(), ClusterEpoch(1), node.durable, {}, {}, {}};
  std::vector<TxnName> wrote, ended;
  for (const Record& record : node.log) {
    if (record.time.value() > node.durable.value()) continue;
    if (record.kind == Record::Kind::kEnd) ended.push_back(record.txn);
    if (record.kind == Record::Kind::kWrite && record.txn.sequence > 0) wrote.push_back(record.txn);
  }
  const auto is_loser = [&](const TxnName& txn) {
    return std::find(wrote.begin(), wrote.end(), txn) != wrote.end() &&
           std::find(ended.begin(), ended.end(), txn) == ended.end();
  };
  std::erase_if(held_, [&](const RowLock& lock) { return lock.owner.master == dead.master; });
  std::erase_if(past_, [&](const PastLock& past) {
    return past.end.master == dead.master && past.end.time.value() > node.durable.value();
  });
  for (const Record& record : node.log) {
    if (record.time.value() > node.durable.value()) continue;
    if (record.kind == Record::Kind::kSplit) dead.steps.push_back({record.page, record.key, record.right, {}});
    if (record.kind != Record::Kind::kWrite || !is_loser(record.txn)) continue;
    dead.steps.push_back({record.page, record.key, {}, record.txn});
    held_.push_back(RowLock::Exclusive(record.txn, record.key));
    if (std::find(to_undo_.begin(), to_undo_.end(), record.txn) == to_undo_.end()) to_undo_.push_back(record.txn);
  }
  for (const TxnName& txn : to_undo_) dead.losers.push_back(txn.sequence);
  for (auto& [id, page] : pages_) {
    std::erase_if(page.versions, [&](const PageLsn& lsn) {
      return lsn.master == dead.master && lsn.time.value() > node.durable.value();
    });
    if (!page.versions.empty() && page.versions.back().master == dead.master) {
      dead.versions.push_back({id, page.versions.back()});
    }
  }
  for (const auto& actor : actors_) {
    if (&actor->node != &node) continue;
    actor->turn.reset();
    actor->wait.reset();
    actor->runs = false;
  }
  dead_ = std::move(dead);
  global_.OnLeaseOver(dead_->master);
}

void LockCluster::RecoverDead() {
  global_.OnMasterDead(*dead_);
  global_.FreePages(dead_->master);
  nodes_[dead_->master.value()]->holds = false;
  dead_.reset();
}

// A survivor has undone a loser.
void LockCluster::UndoOne() {
  if (to_undo_.empty() || dead_ || random_.Below(20) != 0) return;
  const TxnName loser = to_undo_.back();
  to_undo_.pop_back();
  ++undone;
  Node& survivor = RandomLiveNode();
  const EndPlace end{survivor.locks->self(), survivor.clock.Tick()};
  survivor.durable = survivor.clock.now();
  const EndedTxns news{loser.master, loser.epoch, 0, {}, {}, {{loser.sequence, end}}};
  OnEnded(loser, end);
  survivor.locks->Learn(news);
  survivor.Post(news);
}

// ---- the oracle ----

void LockCluster::OnGranted(const Actor& actor, const RowLock& lock) {
  for (const RowLock& held : held_) {
    EXPECT_FALSE(Conflict(held, lock)) << "row " << lock.low << ": kind " << int(lock.kind) << " for master "
                                       << int(lock.owner.master.value()) << " beside kind " << int(held.kind)
                                       << " of master " << int(held.owner.master.value());
  }
  for (const PastLock& past : past_) {
    if (past.end.master == actor.node.locks->self() || !Conflict(past.lock, lock)) continue;
    ++remote_handovers;
    EXPECT_LE(past.end.time.value(), nodes_[past.end.master.value()]->durable.value()) << "the END is not durable";
    EXPECT_TRUE(actor.node.builds_upon.Covers(past.end.master, past.end.time)) << "the next LFB lacks its cause";
  }
  if (lock.kind != RowLockKind::kInsertIntention) held_.push_back(lock);
}

void LockCluster::OnEnded(const TxnName& txn, EndPlace end) {
  std::erase_if(held_, [&](const RowLock& lock) {
    if (lock.owner != txn) return false;
    past_.push_back({lock, end});
    return true;
  });
  if (past_.size() > 200) past_.erase(past_.begin(), past_.begin() + 100);
}

void LockCluster::CheckHolders() {
  for (const auto& [id, page] : pages_) {
    uint32_t shared = 0, exclusive = 0;
    for (const auto& node : nodes_) {
      const auto mode = node->holds ? node->locks->HeldMode(id) : std::nullopt;
      if (mode) ++(*mode == LockMode::kShared ? shared : exclusive);
    }
    EXPECT_TRUE(exclusive == 0 || exclusive + shared == 1) << "conflicting holders of page " << id.value();
  }
}

PageId LockCluster::PageOfKey(Key key) const {
  for (const auto& [id, page] : pages_) {
    if (page.low <= key && key < page.end) return id;
  }
  ADD_FAILURE() << "no page has key " << key;
  return PageId(1);
}

LockCluster::Node& LockCluster::RandomLiveNode() {
  for (;;) {
    Node& node = *nodes_[random_.Below(nodes_.size())];
    if (node.alive) return node;
  }
}

void LockCluster::Finish() {
  begins_ = false;
  const auto is_busy = [&] {
    return dead_ || !to_undo_.empty() ||
           std::any_of(actors_.begin(), actors_.end(), [](const auto& actor) { return actor->runs; });
  };
  for (uint32_t i = 0; i < 200'000 && is_busy() && !::testing::Test::HasFailure(); ++i) StepAny();
  EXPECT_FALSE(is_busy()) << "a transaction waits for ever";
  if (::testing::Test::HasFailure()) return;
  const auto deliver_all = [&] {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const auto& node : nodes_) {
        if (!node->alive) continue;
        goes_on |=
            Deliver(node->to_locks, [&](const Message& m) { return global_.On(node->locks->self(), m.type, m.body); });
        goes_on |= Deliver(node->from_locks, [&](const Message& m) { return node->locks->On(m.type, m.body); });
        goes_on |= node->locks->ReleaseDue();
      }
    }
  };
  for (const auto& node : nodes_) {
    if (!node->alive) continue;
    node->durable = node->clock.now();
    if (const auto news = node->locks->txns().TakeNews(node->durable, false)) node->Post(*news);
  }
  deliver_all();
  VsVector all;
  for (const auto& node : nodes_) all.Set(node->locks->self(), node->clock.now());
  for (const auto& node : nodes_) {
    for (const auto& [id, page] : pages_) {
      if (node->alive) {
        EXPECT_TRUE(node->locks->RowLocksOf(id).empty()) << "a lock of an ended transaction, page " << id.value();
      }
      EXPECT_TRUE(global_.RowLocksOf(id).empty()) << "a lock of an ended transaction, page " << id.value();
      if (node->alive) node->locks->Evict(id);
    }
    node->Post(LeastTv{all});
  }
  deliver_all();
  EXPECT_EQ(global_.pages_in_use(), 0u);
  if (!options_.overtakes) {
    EXPECT_EQ(global_.reported_waits(), 0u);
  }
  for (const auto& node : nodes_) {
    if (node->alive) {
      EXPECT_EQ(node->locks->pages_in_use(), 0u);
    }
  }
}

}  // namespace dbx::mm
