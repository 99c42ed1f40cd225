// One supported pair of concurrency control and log scheme, seen from outside.
//
// main and the tests use a pair through this interface; it is called a few times per run, never per transaction.
// system/pairs/pair.cpp implements it once as a template and is compiled once per pair.
#pragma once

#include <memory>
#include <string>

#include "system/command_line/options.h"
#include "system/result.h"
#include "system/runs/log_files.h"

namespace dbx {

class Engine {
 public:
  virtual ~Engine() = default;

  // Load the workload, run it, harden and acknowledge everything, write RUN_END.
  virtual RunResult Run(const Options& options, LogStorage& storage) = 0;

  // Load the workload afresh, recover the newest (or the chosen) run over it, verify if asked.
  virtual RecoveryResult Recover(const Options& options, LogStorage& storage) = 0;
};

}  // namespace dbx
