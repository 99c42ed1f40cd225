// What every pair includes, whichever it is. The Makefile compiles it once per variant, before the pairs; every file
// still includes what it uses.
#pragma once

#include "base/prelude.h"
#include "system/pairs/control_types.h"
#include "system/pairs/engine.h"
#include "system/pairs/pair_node.h"
#include "system/pairs/pair_types.h"
#include "system/pairs/registry.h"
#include "system/pairs/rules.h"
#include "system/pairs/scheme_types.h"
#include "system/replay/recovery_run.h"
#include "system/run.h"
#include "system/transaction/charged_reads.h"
#include "system/transaction/timed_log.h"
