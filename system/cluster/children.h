// The processes of a cluster that run no transactions, each as the body of a child: Log Stores, the lock process, Page
// Stores. (Masters: master_run.h.)
//
//   child -> parent   its port
//   parent -> child   the addresses of all                       the cluster is connected
//   parent -> child   words, as below;  child -> parent          answers
//   parent -> lock process   GoneWord;  lock process -> parent   LockNews, as masters' recoveries end
//   parent -> child   kEndOfRun                                  it ends
//
// Threads: a child's first one, and those of its parts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "multi_master/lock/global_locks.h"
#include "multi_master/master/initial_pages.h"
#include "multi_master/process/processes.h"
#include "multi_master/tcp_network.h"
#include "system/cluster/child.h"
#include "system/cluster/cluster_result.h"

namespace dbx {

inline constexpr std::chrono::milliseconds kPoll{50};
inline constexpr std::chrono::milliseconds kStartTime{60'000};  // until a cluster is connected

// Words of the parent.
inline const std::string kBegin = "begin", kGo = "go", kStop = "stop", kVerify = "verify", kEndOfRun = "end";

// To the lock process: this master's process has died.
std::string GoneWord(uint8_t master);
std::optional<mm::MasterId> GoneMaster(const std::string& word);

// Of a child: it serves others from now on.
struct Started {};

struct LockNews {
  bool is_last = false;  // before its end: has the counters
  MasterRecovery recovery;
  mm::GlobalLockCounters counters;
};

struct Address {
  mm::NodeId node;
  uint16_t port = 0;  // 0: it has died before it had one
};

// What a child does before its process can be reached, and afterwards.
std::unique_ptr<mm::TcpNetwork> Join(Channel& parent, const mm::ClusterPlan& plan, mm::NodeId node);

// Calls look() now and then, and heed(word) with each word, until the run ends.
void AwaitEnd(Channel& parent, const std::function<void()>& look,
              const std::function<void(const std::string& word)>& heed = {});

void RunLogStore(Channel& parent, const mm::ClusterPlan& plan, uint8_t index, const std::string& directory);
void RunLockProcess(Channel& parent, const mm::ClusterPlan& plan);
void RunPageStore(Channel& parent, const mm::ClusterPlan& plan, uint8_t index, const mm::InitialPages& pages);

}  // namespace dbx
