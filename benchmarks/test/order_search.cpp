#include "benchmarks/test/order_search.h"

#include <algorithm>
#include <iterator>

#include "benchmarks/test/greedy_order.h"

namespace dbx::history {

OrderSearch::OrderSearch(Events events, std::span<const uint64_t> ranks, std::span<const uint32_t> workers,
                         const std::vector<Edge>& known, const std::vector<Presence>& presences, uint64_t work_max)
    : events_(events), presences_(presences), work_max_(work_max), order_(events.Count(ranks.size())) {
  if (events.snapshots) {
    for (uint32_t t = 0; t < ranks.size(); ++t) order_.Link(events.Start(t), events.Commit(t));
  }
  for (const Edge& edge : known) {
    const auto [from, to] = events.ArcOf(edge);
    order_.Link(from, to);
  }
  known_arcs_ = order_.arcs();
  order_.SetOrder(GreedyOrder(events, order_, ranks, workers, presences));
}

// A decision may break choices that held: so repeat until a whole round finds none broken.
OrderSearch::Verdict OrderSearch::Run() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Presence& presence : presences_) {
      if (!Repair(presence, changed)) return Verdict::kImpossible;
      if (Exhausted()) return Verdict::kUndecided;
    }
  }
  return Verdict::kOrdered;
}

bool OrderSearch::Holds(const Edge& edge) const {
  if (edge.from == edge.to) return true;
  const auto [from, to] = events_.ArcOf(edge);
  return order_.position(from) < order_.position(to);
}

bool OrderSearch::Repair(const Presence& presence, bool& changed) {
  std::vector<Life> lives;
  bool lives_changed = false;
  if (!RepairLives(presence, lives, lives_changed)) return false;
  changed |= lives_changed;
  // Where lives overlap, misses cannot be placed yet.
  return lives_changed || RepairMisses(presence, lives, changed);
}

// If neighbours do not overlap, none do.
bool OrderSearch::RepairLives(const Presence& presence, std::vector<Life>& lives, bool& changed) {
  for (const Life& life : presence.lives) {
    if (life.begin != kNone && life.end != kNone) lives.push_back(life);
  }
  work_ += lives.size();
  std::sort(lives.begin(), lives.end(), [this](const Life& a, const Life& b) { return BeginOf(a) < BeginOf(b); });
  for (size_t i = 1; i < lives.size(); ++i) {
    const Life &a = lives[i - 1], &b = lives[i];
    const Edge a_first{a.end, b.begin, EdgeKind::kWw, presence.object};
    const Edge b_first{b.end, a.begin, EdgeKind::kWw, presence.object};
    if (Holds(a_first) || Holds(b_first)) continue;
    changed = true;
    if (!Decide(a_first, b_first)) return false;
    if (Exhausted()) return true;
  }
  return true;
}

bool OrderSearch::RepairMisses(const Presence& presence, const std::vector<Life>& lives, bool& changed) {
  work_ += presence.missers.size();
  if (lives.empty()) return true;
  for (const uint32_t misser : presence.missers) {
    // The last life that begins before the miss: no other can contain it, as long as no decision has moved them.
    const uint32_t at = order_.position(events_.Start(misser));
    const auto behind = std::partition_point(
        lives.begin(), lives.end(), [&](const Life& life) { return order_.position(events_.Commit(life.begin)) < at; });
    if (behind == lives.begin()) continue;
    const Life& life = *std::prev(behind);
    const Edge before{misser, life.begin, EdgeKind::kRw, presence.object};
    const Edge after{life.end, misser, EdgeKind::kWr, presence.object};
    if (Holds(before) || Holds(after)) continue;
    changed = true;
    if (!Decide(before, after)) return false;
    if (Exhausted()) return true;
  }
  return true;
}

OrderSearch::Levels OrderSearch::ReasonsOf(const std::vector<uint32_t>& path) const {
  Levels all;
  for (const uint32_t arc : path) {
    if (arc < known_arcs_) continue;
    const Levels& reasons = steps_[arc - known_arcs_].reasons;
    all.insert(all.end(), reasons.begin(), reasons.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void OrderSearch::Add(const Edge& edge, Levels reasons) {
  const auto [from, to] = events_.ArcOf(edge);
  order_.Add(from, to);
  steps_.push_back({edge, std::move(reasons)});
}

bool OrderSearch::Decide(const Edge& first, const Edge& second) {
  const auto path_back = [this](const Edge& edge) {
    const auto [from, to] = events_.ArcOf(edge);
    return order_.PathBack(from, to);
  };
  const auto rules_out_first = path_back(first), rules_out_second = path_back(second);
  if (rules_out_first && rules_out_second) {
    Levels reasons = ReasonsOf(*rules_out_first), more = ReasonsOf(*rules_out_second), all;
    std::set_union(reasons.begin(), reasons.end(), more.begin(), more.end(), std::back_inserter(all));
    // To name the cycle, the first must follow from the edges that rule out the second, or vice versa: either will do.
    return GoBack(std::move(all), second);
  }
  if (rules_out_first) return Add(second, ReasonsOf(*rules_out_first)), true;
  if (rules_out_second) return Add(first, ReasonsOf(*rules_out_second)), true;
  // The edge that moves less.
  const auto distance = [this](const Edge& edge) {
    const auto [from, to] = events_.ArcOf(edge);
    return order_.position(from) - order_.position(to);
  };
  const bool takes_first = distance(first) <= distance(second);
  const auto level = static_cast<uint32_t>(assumptions_.size());
  assumptions_.push_back({steps_.size(), takes_first ? second : first});
  Add(takes_first ? first : second, {level});
  return true;
}

// The assumptions in `reasons` cannot all be right. `closing` has to hold, and does not.
bool OrderSearch::GoBack(Levels reasons, const Edge& closing) {
  Edge last = closing;
  while (!reasons.empty()) {
    has_gone_back_ = true;
    ++work_;
    const uint32_t level = reasons.back();
    reasons.pop_back();
    const Assumption wrong = assumptions_[level];
    assumptions_.resize(level);
    steps_.resize(wrong.step);
    order_.Truncate(known_arcs_ + wrong.step);
    last = wrong.other;
    const auto [from, to] = events_.ArcOf(last);
    const auto path = order_.PathBack(from, to);
    if (!path) return Add(last, std::move(reasons)), true;
    Levels more = ReasonsOf(*path), all;
    std::set_union(reasons.begin(), reasons.end(), more.begin(), more.end(), std::back_inserter(all));
    reasons = std::move(all);
  }
  for (const Step& step : steps_) {
    if (step.reasons.empty()) implied_.push_back(step.edge);
  }
  implied_.push_back(last);
  return false;
}

}  // namespace dbx::history
