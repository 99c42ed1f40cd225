// The TEST workload and its procedures in one header, for the code that runs them.
#pragma once

#include "benchmarks/test/procedures.h"
#include "benchmarks/test/test_workload.h"

namespace dbx {

static_assert(Workload<TestWorkload>);

}  // namespace dbx
