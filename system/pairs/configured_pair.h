// The pair of concurrency control and log scheme that config.h names, as types.
#pragma once

#include "system/pairs/configured.h"
#include "system/pairs/control_types.h"

namespace dbx {

using ConfiguredPair = PairOf<Configured::kCcAlg, Configured::kUseLocktable, Configured::kScheme, Configured::kLogType>;
using ConfiguredLog = ConfiguredPair::Log;

}  // namespace dbx
