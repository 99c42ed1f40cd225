// Whether a restart is right: it recovers what a serial execution leaves, and refuses nothing that was written in
// order.
#pragma once

#include <string>

#include "tests/models/differential_restart.h"

namespace dbx::models::differential {

// What the transactions leave whose COMMITs are there and covered, run one after the other by their stamps.
Values SerialExecution(const CrashImage& image);
// What a pass forward, which checks what the writers promise, takes for damage; null: nothing. Of a log that has been
// given up below what is needed it reads the rest, in which the first changes of attempts that ended before BEGIN may
// be missing, and the BEGINs of earlier checkpoints.
//  - Changes: the number is that of the last BEGIN below, or one less.
//  - Attempts: one first change, further ones, one COMMIT or ABORT; no COMMIT after a compensation.
//  - Checkpoints: numbers of BEGIN ascend; END follows its BEGIN.
//  - The anchor's checkpoint: at its BEGIN no attempt that is under way lies below what is needed; its END lists the
//    attempts under way that have changes in the backup.
const char* RefusalOf(const CrashImage& image);
// Empty if there is none.
std::string FaultOf(const CrashImage& image);

}  // namespace dbx::models::differential
