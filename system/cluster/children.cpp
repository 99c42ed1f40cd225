#include "system/cluster/children.h"

#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include "base/error.h"
#include "logging/device/posix_file_system.h"
#include "multi_master/lock/lock_process.h"
#include "multi_master/log/log_store.h"

namespace dbx {
namespace {

const std::string kGone = "gone ";

}  // namespace

std::unique_ptr<mm::TcpNetwork> Join(Channel& parent, const mm::ClusterPlan& plan, mm::NodeId node) {
  mm::TcpOptions tcp;
  tcp.terms = {plan.cluster, plan.epoch, node};
  tcp.report = [](const std::string& line) { std::fprintf(stderr, "notice: %s\n", line.c_str()); };
  auto network = std::make_unique<mm::TcpNetwork>(tcp);
  parent.SendValue(network->port());
  const auto bytes = parent.Receive(kStartTime);
  if (!bytes) throw Error(ExitStatus::kIo, "the cluster did not start in time");
  std::vector<Address> addresses(bytes->size() / sizeof(Address));
  std::memcpy(addresses.data(), bytes->data(), bytes->size());
  for (const Address& address : addresses) {
    if (address.port != 0) network->SetAddress(address.node, "127.0.0.1", address.port);
  }
  return network;
}

void AwaitEnd(Channel& parent, const std::function<void()>& look,
              const std::function<void(const std::string& word)>& heed) {
  for (;;) {
    look();
    const auto word = parent.ReceiveText(kPoll);
    if (word && *word == kEndOfRun) return;
    if (word && heed) heed(*word);
  }
}

void RunLogStore(Channel& parent, const mm::ClusterPlan& plan, uint8_t index, const std::string& directory) {
  const auto network = Join(parent, plan, {mm::Role::kLogStore, index});
  PosixFileSystem files;
  mm::LogStoreOptions options;
  options.cluster = plan.cluster;
  options.directory = directory;
  mm::LogStore store(*network, files, options);
  store.Start();
  parent.SendValue(Started());
  AwaitEnd(parent, [&] { store.ThrowIfFailed(); });
  store.Stop();
}

std::string GoneWord(uint8_t master) { return kGone + std::to_string(master); }

std::optional<mm::MasterId> GoneMaster(const std::string& word) {
  if (!word.starts_with(kGone)) return std::nullopt;
  return mm::MasterId(static_cast<uint8_t>(std::stoul(word.substr(kGone.size()))));
}

void RunLockProcess(Channel& parent, const mm::ClusterPlan& plan) {
  const auto network = Join(parent, plan, {mm::Role::kLocks, 0});
  mm::LockProcess locks(*network, mm::OptionsOfLocks(plan));
  locks.Start();
  parent.SendValue(Started());
  std::set<mm::MasterId> told;
  const auto look = [&] {
    locks.ThrowIfFailed();
    for (const mm::MasterDeath& death : locks.deaths()) {
      if (death.undone_nanos == 0 || !told.insert(death.master).second) continue;
      const auto seconds_until = [&](uint64_t nanos) { return static_cast<double>(nanos - death.noticed_nanos) / 1e9; };
      parent.SendValue(LockNews{
          false,
          {death.master.value(), death.losers, seconds_until(death.freed_nanos), seconds_until(death.undone_nanos)},
          {}});
    }
  };
  AwaitEnd(parent, look, [&](const std::string& word) {
    if (const auto master = GoneMaster(word)) locks.OnProcessGone(*master);
  });
  parent.SendValue(LockNews{true, {}, locks.With([](mm::GlobalLocks& global) { return global.counters(); })});
  locks.Stop();
}

void RunPageStore(Channel& parent, const mm::ClusterPlan& plan, uint8_t index, const mm::InitialPages& pages) {
  const auto network = Join(parent, plan, {mm::Role::kPageStore, index});
  mm::PageStoreProcess store(plan, pages, *network);
  store.Start();
  parent.SendValue(Started());
  AwaitEnd(parent, [&] { store.ThrowIfFailed(); });
  parent.SendValue(store.store().counters());
  store.Stop();
}

}  // namespace dbx
