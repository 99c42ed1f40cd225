#!/usr/bin/env python3
"""Breaks the contract of a log scheme or of a concurrency control in one place, a misspelt verb say, and checks that
the compiler stops with the one sentence that names it. Ends with "N passed, M failed".
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SCHEMES = """#include "logging/payload.h"
#include "system/pairs/scheme_types.h"
using namespace dbx;
static_assert(LogScheme<NoLog> && LogScheme<SerialLog<DataPayload>> && LogScheme<EledaLog<VersionedCommandPayload>>);
static_assert(LogScheme<TaurusLog<DataPayload>> && LogScheme<TaurusLog<CommandPayload>>);
static_assert(LogScheme<TaurusLog<VersionedCommandPayload>>);
static_assert(LogScheme<PloverLog<DataPayload>> && LogScheme<SiloRLog<DataPayload>>);
"""
CONTROLS = """#include "logging/none/no_log.h"
#include "concurrency_control/dl_detect.h"
#include "concurrency_control/hekaton.h"
#include "concurrency_control/row_locks.h"
#include "concurrency_control/silo.h"
#include "concurrency_control/two_phase_locking.h"
using namespace dbx;
static_assert(ConcurrencyControl<TwoPhaseLocking<NoLog, RowLocks, DlDetect>>);
static_assert(ConcurrencyControl<Silo<NoLog>> && ConcurrencyControl<Hekaton<NoLog>>);
"""
TRANSACTION = """#include "logging/contract.h"
using namespace dbx;
struct WithoutTimestamps {
  ProcedureId procedure() const;
  std::span<const std::byte> args() const;
  void ForEachImage(auto&&) const;
  Tid commit_version() const;
};
void Log(const LoggedTxn auto& txn);
void Try(const WithoutTimestamps& txn) { Log(txn); }
"""


@dataclass
class Case:
    name: str
    source: str
    sentence: str        # in the compiler's output; empty: it compiles
    path: str = ""       # of the file that is changed
    right: str = ""
    wrong: str = ""


TAURUS, SERIES, SILO_R = "logging/taurus/taurus_log.h", "logging/total_order_log.h", "logging/silo_r/silo_r_log.h"
CASES = [
    Case("the schemes as they are", SCHEMES, ""),
    Case("the concurrency controls as they are", CONTROLS, ""),
    Case("RaiseWatermark misspelt", SCHEMES, "with needs_multi_version declares RaiseWatermark(timestamp)", TAURUS,
         "void RaiseWatermark(", "void RaiseWatermrk("),
    Case("Forgettable misspelt", SCHEMES, "with metadata in the rows declares OnRead, OnWrite", TAURUS,
         "bool Forgettable(", "bool Forgetable("),
    Case("PublishRead misspelt", SCHEMES, "with tracks_reads declares PublishRead(state, meta)", TAURUS,
         "void PublishRead(", "void PublishReads("),
    Case("SetReadOnlyPoint misspelt", SCHEMES, "declares SetCommitPoint and SetReadOnlyPoint(state, point)", SERIES,
         "void SetReadOnlyPoint(", "void SetReadonlyPoint("),
    Case("IsDurable of another type", SCHEMES, "bool IsDurable(point) and point_words()", SERIES,
         "bool IsDurable(CommitPoint point)", "bool IsDurable(const uint64_t* point)"),
    Case("point_words left out", SCHEMES, "bool IsDurable(point) and point_words()", SERIES,
         "static size_t point_words()", "static size_t words_of_a_point()"),
    Case("Void left out", SCHEMES, "declares bool Reserve(state, txn), Submit(state, txn) and Void(state)", SERIES,
         "void Void(TxnState& state)", "void Avoid(TxnState& state)"),
    Case("Idle misspelt", SCHEMES, "with needs_epochs declares Begin(state) and Idle(state)", SILO_R,
         "void Idle(", "void Idel("),
    Case("an option renamed", SCHEMES, "has no member named 'compress'", "logging/log_options.h",
         "bool compress = true", "bool compressed = true"),
    Case("a transaction without timestamps", TRANSACTION, "txn.read_timestamp()"),
    Case("Recheck without an answer", CONTROLS, "LockWrites, Recheck (bool)",
         "concurrency_control/two_phase_locking.h", "bool Recheck() {", "auto Recheck() -> int {"),
    Case("the count of deadlocks renamed", CONTROLS, "with detects_deadlocks has Shared::policy.deadlocks()",
         "concurrency_control/dl_detect.h", "DeadlockCounters deadlocks() const", "DeadlockCounters found() const"),
    Case("end_timestamp renamed", CONTROLS, "of many versions has Timestamp read_timestamp() and end_timestamp()",
         "concurrency_control/hekaton.h", "end_timestamp() const", "commit_timestamp() const"),
]


def failure_of(case: Case) -> str:
    """Empty: the compiler said what the case expects."""
    with tempfile.TemporaryDirectory() as folder:
        if case.path:
            with open(os.path.join(REPOSITORY, case.path), encoding="utf-8") as file:
                text = file.read()
            if text.count(case.right) != 1:
                return f"{case.path} has '{case.right}' {text.count(case.right)} times; move the case along"
            changed = os.path.join(folder, case.path)
            os.makedirs(os.path.dirname(changed))
            with open(changed, "w", encoding="utf-8") as file:
                file.write(text.replace(case.right, case.wrong))
        source = os.path.join(folder, "source.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(case.source)
        command = [*os.environ.get("CXX", "g++").split(), "-std=c++20", "-march=x86-64-v2", "-fsyntax-only",
                   "-fno-diagnostics-color", "-I", folder, "-I", REPOSITORY, source]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"})
    if not case.sentence:
        return "" if done.returncode == 0 else done.stderr[:2000]
    if done.returncode != 0 and case.sentence in done.stderr:
        return ""
    return f"expected '{case.sentence}' in:\n{done.stderr[:2000] or '(it compiles)'}"


def main() -> int:
    with ThreadPoolExecutor(int(os.environ.get("DBX_JOBS", "2"))) as pool:
        failures = list(pool.map(failure_of, CASES))
    for case, failure in zip(CASES, failures):
        print(f"FAILED {case.name}: {failure}" if failure else f"ok {case.name}")
    failed = sum(bool(failure) for failure in failures)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
