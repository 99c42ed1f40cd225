// config.h as C++: the one file that reads its macros.
//
// Included by parse_options.cpp (defaults of the switches) and by configured_pair.h (the pair to compile). An unknown
// value, or one not built yet, stops the compiler here with a pointer to the valid names. All macros of config.h are
// undefined here: none of them (TEST, least of all) reaches other code.
#pragma once

#include <cstdint>
#include <string_view>

#include "concurrency_control/controls.h"
#include "config.h"
#include "logging/central_methods.h"
#include "logging/differential_methods.h"
#include "logging/schemes.h"
#include "storage/persistent_memory.h"

#if LOG_TYPE != LOG_DATA && LOG_TYPE != LOG_COMMAND
#error "unknown LOG_TYPE; built are LOG_DATA and LOG_COMMAND"
#endif

#if WORKLOAD != YCSB && WORKLOAD != TPCC && WORKLOAD != TEST && WORKLOAD != SMS
#error "unknown WORKLOAD; built are YCSB, TPCC, TEST and SMS"
#endif

#if INDEX_STRUCT != IDX_HASH && INDEX_STRUCT != IDX_BTREE
#error "unknown INDEX_STRUCT; built are IDX_HASH and IDX_BTREE"
#endif

#if ISOLATION_LEVEL == REPEATABLE_READ || ISOLATION_LEVEL == READ_COMMITTED || ISOLATION_LEVEL == READ_UNCOMMITTED
#error "this ISOLATION_LEVEL is not built; built are SERIALIZABLE and, with CC_ALG HEKATON, SNAPSHOT"
#elif ISOLATION_LEVEL != SERIALIZABLE && ISOLATION_LEVEL != SNAPSHOT
#error "unknown ISOLATION_LEVEL; built are SERIALIZABLE and, with CC_ALG HEKATON, SNAPSHOT"
#endif

namespace dbx {

// Once undefined, the names are words again, and are looked up in the lists of concurrency_control/controls.h,
// logging/schemes.h and logging/central_methods.h. A name that stays defined is its number, and in no list.
#undef NO_WAIT
#undef WAIT_DIE
#undef DL_DETECT
#undef TIMESTAMP
#undef MVCC
#undef HSTORE
#undef OCC
#undef TICTOC
#undef SILO
#undef VLL
#undef HEKATON
#undef LOG_NO
#undef LOG_INSTANT
#undef LOG_SERIAL
#undef LOG_BATCH
#undef LOG_TAURUS
#undef LOG_PLOVER
#undef LOG_ELEDA
#undef LOG_DIFFERENTIAL
#undef LOG_WBL
#undef ELEDA
#undef MUTEX
#undef CONSOLIDATION
#undef BITMAP
#define DBX_WORD(text) #text
#define DBX_WORD_OF(macro) DBX_WORD(macro)

consteval CcAlg CcAlgNamed(std::string_view name) {
  if (const ControlInfo* info = ControlNamed(name)) return info->alg;
  throw "unknown CC_ALG, or one that is not built; config.h says above CC_ALG's names which are built";
}

consteval format::Scheme SchemeNamed(std::string_view name) {
  if (const SchemeInfo* info = SchemeWithName(name)) return info->scheme;
  throw "unknown LOG_ALGORITHM, or one that is not built yet; config.h says above its default which are built";
}

struct Configured {
  static constexpr CcAlg kCcAlg = CcAlgNamed(DBX_WORD_OF(CC_ALG));
  static constexpr bool kUseLocktable = USE_LOCKTABLE;
  static constexpr format::Scheme kScheme = SchemeNamed(DBX_WORD_OF(LOG_ALGORITHM));
  static constexpr LogType kLogType = LOG_TYPE == LOG_COMMAND ? LogType::kCommand : LogType::kData;
  // The same names as a user writes them.
  static constexpr const char* kCcName = InfoOf(kCcAlg).name.data();
  static constexpr const char* kLogName = InfoOf(kScheme).name.data();
  static constexpr const char* kLogTypeName = LOG_TYPE == LOG_COMMAND ? "LOG_COMMAND" : "LOG_DATA";
  static constexpr const char* kWorkloadName = WORKLOAD == SMS    ? "SMS"
                                               : WORKLOAD == TEST ? "TEST"
                                               : WORKLOAD == TPCC ? "TPCC"
                                                                  : "YCSB";
  static constexpr const char* kCentralLogName = DBX_WORD_OF(CENTRAL_LOG);
  static constexpr const char* kIndexName = INDEX_STRUCT == IDX_BTREE ? "IDX_BTREE" : "IDX_HASH";
  static constexpr const char* kIsolationName = ISOLATION_LEVEL == SNAPSHOT ? "SNAPSHOT" : "SERIALIZABLE";

  static constexpr uint32_t kThreadCnt{THREAD_CNT};
  static constexpr uint64_t kMaxTxnsPerThread{MAX_TXNS_PER_THREAD};
  static constexpr uint64_t kWarmup{WARMUP};
  static constexpr uint32_t kLookahead{LOOKAHEAD};
  static constexpr uint64_t kAbortPenaltyNs{ABORT_PENALTY};
  static constexpr uint32_t kEpochPeriodMs{EPOCH_PERIOD};
  static constexpr bool kPrtLatDistr = PRT_LAT_DISTR;
  static constexpr bool kTimeEnable = TIME_ENABLE;
  static constexpr bool kTimeParts = TIME_PARTS;
  static constexpr bool kPmReads = PM_READS;

  static constexpr uint64_t kSynthTableSize{SYNTH_TABLE_SIZE};
  static constexpr double kZipfTheta = ZIPF_THETA;
  static constexpr double kReadPerc = READ_PERC;
  static constexpr double kWritePerc = WRITE_PERC;
  static constexpr double kScanPerc = SCAN_PERC;
  static constexpr uint32_t kScanLen{SCAN_LEN};
  static constexpr uint32_t kReqPerQuery{REQ_PER_QUERY};
  static constexpr uint32_t kFieldPerTuple{FIELD_PER_TUPLE};

  static constexpr uint32_t kNumWh{NUM_WH};
  static constexpr bool kTpccFullMix = TPCC_FULL_MIX;
  static constexpr double kPercPayment = PERC_PAYMENT;
  static constexpr bool kWhUpdate = WH_UPDATE;
  static constexpr bool kTpccSmall = TPCC_SMALL;

  static constexpr uint64_t kSmsRows{SMS_ROWS};
  static constexpr uint32_t kSmsSlotBytes{SMS_SLOT_BYTES};
  static constexpr uint32_t kSmsAbortPerc{SMS_ABORT_PERC};

  static constexpr uint32_t kNumLogger{NUM_LOGGER};
  static constexpr uint64_t kStripeUnitBytes{STRIPE_UNIT};
  static constexpr uint64_t kLogBufferBytes{LOG_BUFFER_SIZE};
  static constexpr uint64_t kMaxLogEntryBytes{MAX_LOG_ENTRY_SIZE};
  static constexpr bool kLogNoFlush = LOG_NO_FLUSH;
  static constexpr uint64_t kLogFlushIntervalUs{LOG_FLUSH_INTERVAL};
  static constexpr uint64_t kFlushBlockBytes{FLUSH_BLOCK_SIZE};
  static constexpr uint64_t kReadBlockBytes{READ_BLOCK_SIZE};
  static constexpr uint64_t kLogLimitBytes{LOG_LIMIT};
  static constexpr bool kCompressLsnLog = COMPRESS_LSN_LOG;
  static constexpr uint32_t kPsnFlushFreq{PSN_FLUSH_FREQ};
  static constexpr bool kLatencyHiding = LATENCY_HIDING;
  static constexpr uint64_t kHoppingDistanceBytes{HOPPING_DISTANCE};
  static constexpr uint64_t kPageBytes{DIFF_PAGE_SIZE};
  static constexpr uint32_t kCheckpointIntervalMs{CHECKPOINT_INTERVAL};
  static constexpr uint64_t kCheckpointBytes{CHECKPOINT_BYTES};
  static constexpr uint32_t kCheckpointCpuPercent{CHECKPOINT_CPU_PERC};
  static constexpr bool kLogTruncation = LOG_TRUNCATION;
  static constexpr uint32_t kRestartLevel{RESTART_LEVEL};
  static constexpr const char* kDiffMethodName = DBX_WORD_OF(DIFF_METHOD);
  static constexpr const char* kDiffImageName = DBX_WORD_OF(DIFF_IMAGE);
  static constexpr uint64_t kHeapBytes{HEAP_BYTES};
  static constexpr uint32_t kIndexLines = INDEX_LINES;
  static constexpr const char* kFlushName = DBX_WORD_OF(PM_FLUSH);
  static constexpr bool kAdoptOnDemand = ADOPT_ON_DEMAND;
  static constexpr bool kUpdateSimd = UPDATE_SIMD;
  static constexpr uint64_t kLocktableModifier{LOCKTABLE_MODIFIER};
  static constexpr uint64_t kLocktableEvictBufferBytes{LOCKTABLE_EVICT_BUFFER};
};

static_assert(Configured::kReadPerc + Configured::kWritePerc + Configured::kScanPerc > 0.999999 &&
                  Configured::kReadPerc + Configured::kWritePerc + Configured::kScanPerc < 1.000001,
              "READ_PERC and WRITE_PERC make 1 together with SCAN_PERC: set them all");

static_assert(CentralMethodNamed(Configured::kCentralLogName).has_value(),
              "unknown CENTRAL_LOG; config.h says above its default which are built");

static_assert(Configured::kRestartLevel <= 4, "RESTART_LEVEL is 0, 1, 2, 3 or 4");

static_assert(DiffMethodNamed(Configured::kDiffMethodName).has_value(),
              "unknown DIFF_METHOD; built are DL1P, DL2P and PL2P");

static_assert(std::string_view(Configured::kDiffImageName) == "SLOT" ||
                  std::string_view(Configured::kDiffImageName) == "RUNS",
              "unknown DIFF_IMAGE; built are SLOT and RUNS");

static_assert(FlushInstructionNamed(Configured::kFlushName).has_value(),
              "unknown PM_FLUSH; built are AUTO, CLWB, CLFLUSHOPT and CLFLUSH");

static_assert(Configured::kEpochPeriodMs >= 1, "EPOCH_PERIOD is at least 1 ms");

}  // namespace dbx

#undef DBX_WORD
#undef DBX_WORD_OF
#undef YCSB
#undef TPCC
#undef TEST
#undef SMS
#undef LOG_DATA
#undef LOG_COMMAND
#undef IDX_HASH
#undef IDX_BTREE
#undef SERIALIZABLE
#undef SNAPSHOT
#undef REPEATABLE_READ
#undef READ_COMMITTED
#undef READ_UNCOMMITTED
