#include "tests/models/differential_verdict.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace dbx::models::differential {
namespace {

// The transactions that must be recovered, by their stamps.
std::vector<uint8_t> Recovered(const CrashImage& image) {
  std::vector<std::pair<uint8_t, uint8_t>> ends;
  for (size_t log = 0; log < kLogs; ++log) {
    for (size_t at = 0; at < image.cut[log]; ++at) {
      const Record& record = image.state.At(log, at);
      if (record.kind == Record::kCommit && image.Covers(record)) ends.emplace_back(record.stamp, record.txn);
    }
  }
  std::sort(ends.begin(), ends.end());
  std::vector<uint8_t> txns;
  for (const auto& [stamp, txn] : ends) txns.push_back(txn);
  return txns;
}

// The changes that are in the logs or will be, as (delta, transaction).
std::vector<std::pair<uint16_t, uint8_t>> ChangesOf(const CrashImage& image, size_t page) {
  std::vector<std::pair<uint16_t, uint8_t>> changes;
  const auto add = [&](uint16_t delta, size_t txn) {
    const std::pair<uint16_t, uint8_t> change(delta, static_cast<uint8_t>(txn));
    if (delta != 0 && std::find(changes.begin(), changes.end(), change) == changes.end()) changes.push_back(change);
  };
  for (size_t log = 0; log < kLogs; ++log) {
    for (size_t at = 0; at < image.state.counts[log]; ++at) {
      const Record& record = image.state.At(log, at);
      if (record.kind == Record::kChange && record.page == page) add(record.delta, record.txn);
    }
  }
  for (size_t t = 0; t < kTxns; ++t) {
    for (const uint16_t delta : image.state.txns[t].deltas) add(delta, t);
  }
  return changes;
}

// Which changes have been applied once too often, or once too seldom; XOR cannot tell which of the two.
std::string OffBy(const CrashImage& image, size_t page, uint16_t difference) {
  const auto changes = ChangesOf(image, page);
  for (int count = 1; count <= static_cast<int>(changes.size()); ++count) {
    for (uint32_t set = 1; set < 1u << changes.size(); ++set) {
      if (__builtin_popcount(set) != count) continue;
      uint16_t sum = 0;
      std::string names;
      for (size_t i = 0; i < changes.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        sum ^= changes[i].first;
        names += fmt::format("{}a change of T{}", names.empty() ? "" : " and ", changes[i].second + 1);
      }
      if (sum == difference) return fmt::format("{} is off by {}", PageName(page), names);
    }
  }
  return fmt::format("{} is not as a serial execution leaves it", PageName(page));
}

// One log's pass forward.
class ForwardCheck {
 public:
  ForwardCheck(const CrashImage& image, size_t log)
      : image_(image), anchor_(image.state.anchor), log_(log), is_cut_(LowestOf(image, log) > 0) {
    if (is_cut_) begun_ = static_cast<int8_t>(anchor_.number - 1);  // at most, until there is a BEGIN
  }

  const char* Run() {
    for (int at = LowestOf(image_, log_); at < image_.cut[log_]; ++at) {
      const Record& record = image_.state.At(log_, static_cast<size_t>(at));
      const char* fault = nullptr;
      if (record.kind == Record::kChange) fault = SeeChange(record, at);
      if (record.kind == Record::kCommit || record.kind == Record::kAbort) fault = SeeEndOfAttempt(record, at);
      if (record.kind == Record::kBegin) fault = SeeBegin(record);
      if (record.kind == Record::kEnd) fault = SeeEnd(record, at);
      if (fault != nullptr) return fault;
    }
    return nullptr;
  }

 private:
  struct Attempt {
    bool is_open = false, is_taken_back = false;
    int first = 0;
    int8_t least_number = 0;
  };

  // Whether an attempt may have its first record where the log has been given up.
  bool MayBeCut(int at) const { return image_.rules.knows_cut_attempts && is_cut_ && at < anchor_.begin[log_]; }

  // Whether the last BEGIN below is still there, if there was one.
  bool KnowsBegin() const { return has_begun_ || !is_cut_; }

  const char* SeeChange(const Record& record, int at) {
    if (record.number > begun_) return "a change of a checkpoint that has not begun";
    if (KnowsBegin() && record.number + 1 < begun_) return "a change that a later checkpoint should have reached";
    Attempt& attempt = attempts_[record.txn];
    if ((record.flags & Record::kFirst) != 0) {
      if (attempt.is_open) return "a transaction that begins twice";
      attempt = {true, false, at, record.number};
    } else if (!attempt.is_open) {
      if (!MayBeCut(at)) return "a change of a transaction that has not begun";
      attempt = {true, false, -1, record.number};
    }
    attempt.least_number = std::min(attempt.least_number, record.number);
    attempt.is_taken_back |= (record.flags & Record::kCompensation) != 0;
    return nullptr;
  }

  const char* SeeEndOfAttempt(const Record& record, int at) {
    const Attempt attempt = std::exchange(attempts_[record.txn], {});
    if (!attempt.is_open && !MayBeCut(at)) return "the end of a transaction that has not begun";
    if (attempt.is_taken_back && record.kind == Record::kCommit) return "COMMIT of a transaction that was taken back";
    return nullptr;
  }

  const char* SeeBegin(const Record& record) {
    if (record.number <= begun_ && KnowsBegin()) return "a checkpoint that began before";
    begun_ = record.number;
    has_begun_ = true;
    for (const Attempt& attempt : attempts_) {
      if (!attempt.is_open || record.number != anchor_.number) continue;
      if (attempt.first < anchor_.needed[log_]) return "a change that is needed, and not according to the anchor";
    }
    return nullptr;
  }

  const char* SeeEnd(const Record& record, int at) const {
    if (record.number != begun_ && KnowsBegin()) return "the end of a checkpoint that has not begun";
    for (size_t t = 0; t < kTxns && at == anchor_.end[log_]; ++t) {
      if (!attempts_[t].is_open || attempts_[t].least_number >= anchor_.number) continue;
      if ((record.list & BitOf(t)) == 0) return "END without a transaction that has changes in the backup";
    }
    return nullptr;
  }

  const CrashImage& image_;
  const Anchor& anchor_;
  const size_t log_;
  const bool is_cut_;
  int8_t begun_ = 0;
  bool has_begun_ = false;
  std::array<Attempt, kTxns> attempts_;
};

}  // namespace

const char* RefusalOf(const CrashImage& image) {
  for (size_t log = 0; log < image.scenario.logs; ++log) {
    if (const char* fault = ForwardCheck(image, log).Run()) return fault;
  }
  return nullptr;
}

Values SerialExecution(const CrashImage& image) {
  Values values;
  for (size_t p = 0; p < kPages; ++p) values[p] = image.scenario.FirstValue(p);
  for (const uint8_t txn : Recovered(image)) {
    const std::string_view operations = image.scenario.txns[txn];
    const size_t commit = operations.find('C');
    for (size_t op = FirstOf(operations, commit); op < commit; ++op) {
      uint16_t& value = values[PageOf(operations[op])];
      value = NewValue(value, txn, op);
    }
  }
  return values;
}

std::string FaultOf(const CrashImage& image) {
  for (size_t k = 0; k < image.scenario.logs; ++k) {
    const int needed = image.state.anchor.needed[k], punched = image.state.punched[k];
    if (needed < punched) return fmt::format("a restart begins at record {}, and {} were given up", needed, punched);
  }
  const bool checks = image.rules.checks && image.rules.numbers && image.rules.append == Append::kPlaceFirst;
  if (const char* refusal = checks ? RefusalOf(image) : nullptr) return fmt::format("a restart refuses {}", refusal);
  const Values expected = SerialExecution(image), got = Recover(image);
  if (got == expected) return {};
  std::string left, txns, pages;
  for (size_t k = 0; k < image.scenario.logs; ++k) left += fmt::format("{}{}", k == 0 ? "" : " and ", image.cut[k]);
  for (const uint8_t txn : Recovered(image)) txns += fmt::format("{}T{}", txns.empty() ? "" : " and ", txn + 1);
  for (size_t p = 0; p < kPages; ++p) {
    const auto difference = static_cast<uint16_t>(got[p] ^ expected[p]);
    if (difference != 0) pages += (pages.empty() ? "" : ", ") + OffBy(image, p, difference);
  }
  return fmt::format("a crash leaves {} record{}; {} recovered; {}", left, left == "1" ? "" : "s",
                     txns.empty() ? "no transaction is" : txns + (txns.size() > 2 ? " are" : " is"), pages);
}

}  // namespace dbx::models::differential
