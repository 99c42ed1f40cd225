#include "system/cluster/children.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "logging/device/posix_file_system.h"
#include "multi_master/lock/lock_process.h"
#include "multi_master/log/log_store.h"

namespace dbx {

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
  AwaitEnd(parent, [&] { store.ThrowIfFailed(); });
  store.Stop();
}

void RunLockProcess(Channel& parent, const mm::ClusterPlan& plan) {
  const auto network = Join(parent, plan, {mm::Role::kLocks, 0});
  mm::LockProcess locks(*network, mm::OptionsOfLocks(plan));
  locks.Start();
  AwaitEnd(parent, [&] { locks.ThrowIfFailed(); });
  parent.SendValue(locks.With([](mm::GlobalLocks& global) { return global.counters(); }));
  locks.Stop();
}

void RunPageStore(Channel& parent, const mm::ClusterPlan& plan, uint8_t index, const mm::InitialPages& pages) {
  const auto network = Join(parent, plan, {mm::Role::kPageStore, index});
  mm::PageStoreProcess store(plan, pages, *network);
  store.Start();
  AwaitEnd(parent, [&] { store.ThrowIfFailed(); });
  parent.SendValue(store.store().counters());
  store.Stop();
}

}  // namespace dbx
