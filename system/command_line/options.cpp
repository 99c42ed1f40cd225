#include "system/command_line/options.h"

namespace dbx {

const char* WorkloadName(WorkloadKind workload) {
  switch (workload) {
    case WorkloadKind::kYcsb:
      return "YCSB";
    case WorkloadKind::kTpcc:
      return "TPCC";
    case WorkloadKind::kTest:
      return "TEST";
  }
  return "";
}

}  // namespace dbx
