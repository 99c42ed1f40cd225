#include "multi_master/network.h"

#include "base/check.h"

namespace dbx::mm {

std::string NameOf(NodeId node) {
  const std::string index = " " + std::to_string(node.index);
  switch (node.role) {
    case Role::kMaster:
      return "master" + index;
    case Role::kLocks:
      return "lock process";
    case Role::kLogStore:
      return "log store" + index;
    case Role::kPageStore:
      return "page store" + index;
  }
  CHECK(false);
}

}  // namespace dbx::mm
