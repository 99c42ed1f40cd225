// The TEST workload with its procedures, for those who run them.
#pragma once

#include "benchmarks/test/procedures.h"
#include "benchmarks/test/test_workload.h"

namespace dbx {

static_assert(Workload<TestWorkload>);

}  // namespace dbx
