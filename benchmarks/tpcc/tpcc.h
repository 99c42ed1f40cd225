// TPC-C and its stored procedures in one header, for the code that runs them.
#pragma once

#include "benchmarks/tpcc/procedures.h"
#include "benchmarks/tpcc/scanning_procedures.h"
#include "benchmarks/tpcc/tpcc_workload.h"

namespace dbx {

static_assert(Workload<Tpcc>);

}  // namespace dbx
