#include "benchmarks/test/event_order.h"

#include <algorithm>
#include <utility>

namespace dbx::history {

void EventOrder::Link(uint32_t from, uint32_t to) {
  const auto number = static_cast<uint32_t>(arcs_.size());
  arcs_.push_back({from, to, first_out_[from], first_in_[to]});
  first_out_[from] = first_in_[to] = number;
}

void EventOrder::SetOrder(std::vector<uint32_t> order) {
  order_ = std::move(order);
  position_.resize(order_.size());
  for (uint32_t place = 0; place < order_.size(); ++place) position_[order_[place]] = place;
}

void EventOrder::SearchForward(uint32_t event, uint32_t last, uint32_t wanted) {
  found_.assign(1, event);
  mark_[event] = ++search_;
  for (size_t next = 0; next < found_.size(); ++next) {
    ++visits_;
    for (uint32_t a = first_out_[found_[next]]; a != kNone; a = arcs_[a].next_out) {
      const uint32_t to = arcs_[a].to;
      if (mark_[to] == search_ || position_[to] > last) continue;
      mark_[to] = search_;
      reached_by_[to] = a;
      found_.push_back(to);
      if (to == wanted) return;
    }
  }
}

void EventOrder::SearchBackward(uint32_t event, uint32_t first) {
  found_.assign(1, event);
  mark_[event] = ++search_;
  for (size_t next = 0; next < found_.size(); ++next) {
    ++visits_;
    for (uint32_t a = first_in_[found_[next]]; a != kNone; a = arcs_[a].next_in) {
      const uint32_t from = arcs_[a].from;
      if (mark_[from] == search_ || position_[from] < first) continue;
      mark_[from] = search_;
      found_.push_back(from);
    }
  }
}

std::optional<std::vector<uint32_t>> EventOrder::PathBack(uint32_t from, uint32_t to) {
  if (from == to) return std::vector<uint32_t>();
  if (position_[from] < position_[to]) return std::nullopt;
  SearchForward(to, position_[from], from);
  if (mark_[from] != search_) return std::nullopt;
  std::vector<uint32_t> path;
  for (uint32_t at = from; at != to; at = arcs_[path.back()].from) path.push_back(reached_by_[at]);
  return path;
}

// Events that reach `from` take the first of the moved events' places, those that `to` reaches the others.
void EventOrder::Add(uint32_t from, uint32_t to) {
  const uint32_t first = position_[to], last = position_[from];
  Link(from, to);
  if (last < first) return;
  const auto by_position = [this](uint32_t a, uint32_t b) { return position_[a] < position_[b]; };
  SearchForward(to, last, kNone);
  std::vector<uint32_t> behind = std::move(found_);
  SearchBackward(from, first);
  std::vector<uint32_t> moved = std::move(found_);
  std::sort(behind.begin(), behind.end(), by_position);
  std::sort(moved.begin(), moved.end(), by_position);
  moved.insert(moved.end(), behind.begin(), behind.end());
  std::vector<uint32_t> places;
  for (const uint32_t event : moved) places.push_back(position_[event]);
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < moved.size(); ++i) {
    position_[moved[i]] = places[i];
    order_[places[i]] = moved[i];
  }
}

// The last arc of all is the first of its events.
void EventOrder::Truncate(size_t count) {
  for (; arcs_.size() > count; arcs_.pop_back()) {
    const Arc& arc = arcs_.back();
    first_out_[arc.from] = arc.next_out;
    first_in_[arc.to] = arc.next_in;
  }
}

}  // namespace dbx::history
