// Every switch with a default that is compiled in: one `#define NAME value` line each, unit and effect above it.
//
// Three ways to set one: edit the line (scripts rewrite it with the regular expression `#define\s*NAME.*`, so a
// comment never stands behind a value), `make NAME=value`, or, for all but the first group, a flag at run time
// (./rundb -h). config-std.h is the pristine copy. system/pairs/configured.h alone reads this file.

// ---- Names of values --------------------------------------------------------------------------------------

// CC_ALG. Built: all but TIMESTAMP, HSTORE, OCC and VLL; MVCC is another name of HEKATON.
#define NO_WAIT 1
#define WAIT_DIE 2
#define DL_DETECT 3
#define TIMESTAMP 4
#define MVCC 5
#define HSTORE 6
#define OCC 7
#define TICTOC 8
#define SILO 9
#define VLL 10
#define HEKATON 11

// WORKLOAD. Built: all.
#define YCSB 1
#define TPCC 2
#define TEST 3
#define SMS 4

// LOG_ALGORITHM. Built: all.
#define LOG_NO 1
#define LOG_SERIAL 2
#define LOG_BATCH 3
#define LOG_TAURUS 4
#define LOG_PLOVER 5
#define LOG_ELEDA 6
#define LOG_DIFFERENTIAL 7
#define LOG_WBL 8
#define LOG_INSTANT 9

// LOG_TYPE. Built: both.
#define LOG_DATA 1
#define LOG_COMMAND 2

// INDEX_STRUCT. Built: both.
#define IDX_HASH 1
#define IDX_BTREE 2

// CENTRAL_LOG. Built: all.
#define ELEDA 1
#define MUTEX 2
#define CONSOLIDATION 3
#define BITMAP 4

// ISOLATION_LEVEL. Built: SERIALIZABLE, SNAPSHOT.
#define SERIALIZABLE 1
#define SNAPSHOT 2
#define REPEATABLE_READ 3
#define READ_COMMITTED 4
#define READ_UNCOMMITTED 5

// ---- What is compiled in ----------------------------------------------------------------------------------

// Concurrency control: two-phase locking that aborts on a conflict (NO_WAIT), waits for younger transactions only
// (WAIT_DIE), or waits and breaks deadlocks (DL_DETECT); OCC with epochs (SILO), or with timestamps that transactions
// compute from what they access (TICTOC; not with LOG_COMMAND); optimistic and in many versions (HEKATON).
#ifndef CC_ALG
#define CC_ALG NO_WAIT
#endif

// 0 or 1. 1: locks and log metadata live in a lock table of active tuples, not beside each row (two-phase locking).
#ifndef USE_LOCKTABLE
#define USE_LOCKTABLE 0
#endif

// Log scheme. Built:
//   LOG_NO      nothing is written
//   LOG_SERIAL  one stream, one order
//   LOG_BATCH   Silo-R: epochs; SILO and LOG_DATA only
//   LOG_TAURUS  parallel streams, LSN vectors
//   LOG_PLOVER  a log for each partition, global sequence numbers; LOG_DATA only
//   LOG_ELEDA   one stream without a lock
//   LOG_DIFFERENTIAL  the XOR of each change, pages, fuzzy checkpoints; LOG_DATA only
//   LOG_WBL     write-behind: a heap of versions, and which of them count; LOG_DATA only, neither SILO nor TICTOC
//   LOG_INSTANT  one stream of changes, chained by row for redo on demand; LOG_DATA only, no lock table
#ifndef LOG_ALGORITHM
#define LOG_ALGORITHM LOG_NO
#endif

// What a log record holds: LOG_DATA (the rows as written) or LOG_COMMAND (the procedure and its arguments).
#ifndef LOG_TYPE
#define LOG_TYPE LOG_DATA
#endif

// Structure of the primary indexes: IDX_HASH, or IDX_BTREE, which can be scanned. A table that its workload scans is
// ordered either way.
#ifndef INDEX_STRUCT
#define INDEX_STRUCT IDX_HASH
#endif

// Isolation of transactions: SERIALIZABLE, or SNAPSHOT (HEKATON only).
#ifndef ISOLATION_LEVEL
#define ISOLATION_LEVEL SERIALIZABLE
#endif

// ---- What runs --------------------------------------------------------------------------------------------

// Workload: YCSB, TPCC, TEST or SMS.
#ifndef WORKLOAD
#define WORKLOAD YCSB
#endif

// Worker threads; at recovery, threads that replay.
#ifndef THREAD_CNT
#define THREAD_CNT 4
#endif

// Transactions that each worker runs (DBx1000's name of MAX_TXNS_PER_THREAD).
#ifndef MAX_TXN_PER_PART
#define MAX_TXN_PER_PART 100
#endif

// Transactions that each worker runs.
#ifndef MAX_TXNS_PER_THREAD
#define MAX_TXNS_PER_THREAD MAX_TXN_PER_PART
#endif

// Transactions per worker before the measured interval.
#ifndef WARMUP
#define WARMUP 0
#endif

// Calls: how far ahead of the current one in its queue a worker prefetches index buckets, and half as far rows. 0: no
// look-ahead, as in engines that take one transaction at a time.
#ifndef LOOKAHEAD
#define LOOKAHEAD 6
#endif

// Nanoseconds: an aborted transaction waits this long before it runs again.
#ifndef ABORT_PENALTY
#define ABORT_PENALTY 0
#endif

// Milliseconds between two epochs, at least 1 (SILO; LOG_BATCH acknowledges by epochs).
#ifndef EPOCH_PERIOD
#define EPOCH_PERIOD 40
#endif

// 0 or 1. 1: the distribution of latencies is printed.
#ifndef PRT_LAT_DISTR
#define PRT_LAT_DISTR 0
#endif

// 0 or 1. 1: one transaction in 64 is timed on its way to its acknowledgement: order, append, flush, dependencies.
#ifndef TIME_ENABLE
#define TIME_ENABLE 0
#endif

// 0 or 1; compiled in, without a flag. 1: where the workers' time goes (system/transaction/time_ledger.h), at the price
// of several readings of the clock per access.
#ifndef TIME_PARTS
#define TIME_PARTS 0
#endif

// 0 or 1; compiled in, without a flag. 1: workers pay for each read of a row as if it lay in persistent memory of the
// latency that LOG_DEVICE names (system/transaction/charged_reads.h).
#ifndef PM_READS
#define PM_READS 0
#endif

// ---- YCSB -------------------------------------------------------------------------------------------------

// Rows of the table, about 1 KB each.
#ifndef SYNTH_TABLE_SIZE
#define SYNTH_TABLE_SIZE 10000
#endif

// Skew of the Zipf distribution that picks the keys; 0 is uniform.
#ifndef ZIPF_THETA
#define ZIPF_THETA 0.6
#endif

// Share of accesses that read, 0 to 1.
#ifndef READ_PERC
#define READ_PERC 0.5
#endif

// Share of accesses that write, 0 to 1; with READ_PERC and SCAN_PERC it makes 1.
#ifndef WRITE_PERC
#define WRITE_PERC (1 - READ_PERC - SCAN_PERC)
#endif

// Share of accesses that scan, 0 to 1; needs INDEX_STRUCT IDX_BTREE.
#ifndef SCAN_PERC
#define SCAN_PERC 0
#endif

// Rows that a scan reads.
#ifndef SCAN_LEN
#define SCAN_LEN 20
#endif

// Accesses per transaction.
#ifndef REQ_PER_QUERY
#define REQ_PER_QUERY 2
#endif

// Fields of 100 bytes per tuple.
#ifndef FIELD_PER_TUPLE
#define FIELD_PER_TUPLE 10
#endif

// ---- TPC-C ------------------------------------------------------------------------------------------------

// Warehouses.
#ifndef NUM_WH
#define NUM_WH 1
#endif

// 0 or 1. 1: the standard's mix of all five transactions (45 % New-Order, 43 % Payment, 4 % each Order-Status, Delivery
// and Stock-Level). 0: Payment and New-Order, as PERC_PAYMENT says.
#ifndef TPCC_FULL_MIX
#define TPCC_FULL_MIX 0
#endif

// Share of Payment among Payment and New-Order, 0 to 1 (TPCC_FULL_MIX 0).
#ifndef PERC_PAYMENT
#define PERC_PAYMENT 0.5
#endif

// 0 or 1. 0: Payment leaves the warehouse's W_YTD alone.
#ifndef WH_UPDATE
#define WH_UPDATE 1
#endif

// 0 or 1. 1: small cardinalities, for tests.
#ifndef TPCC_SMALL
#define TPCC_SMALL 0
#endif

// ---- SMS --------------------------------------------------------------------------------------------------

// Messages of the loaded table, at least 64: each of the 64 queues has a 64th of them, rounded down.
#ifndef SMS_ROWS
#define SMS_ROWS 1000000
#endif

// Bytes of a message, 64 to 2048, a multiple of 8: 4 of its id, 12 of its address, the others of its text.
#ifndef SMS_SLOT_BYTES
#define SMS_SLOT_BYTES 256
#endif

// Percent of the transactions that roll back after their changes, a whole number from 0 to 100.
#ifndef SMS_ABORT_PERC
#define SMS_ABORT_PERC 2
#endif

// ---- Logging ----------------------------------------------------------------------------------------------

// Log streams, 1 to 16; LOG_SERIAL and LOG_ELEDA have one.
#ifndef NUM_LOGGER
#define NUM_LOGGER 1
#endif

// Bytes of a stripe unit, a multiple of 4096: LOG_SERIAL over several directories stripes its log over them (RAID-0).
#ifndef STRIPE_UNIT
#define STRIPE_UNIT (512 << 10)
#endif

// Bytes of ring buffer per log stream.
#ifndef LOG_BUFFER_SIZE
#define LOG_BUFFER_SIZE (8 << 20)
#endif

// Bytes of the largest log record; a transaction that needs more is aborted.
#ifndef MAX_LOG_ENTRY_SIZE
#define MAX_LOG_ENTRY_SIZE (1 << 20)
#endif

// 0 or 1. 1: logs are written and never synced; every result says so.
#ifndef LOG_NO_FLUSH
#define LOG_NO_FLUSH 0
#endif

// Microseconds that a complete record waits at most until its flush starts. Where workers and log writers, one for each
// directory, outnumber the cores, so many for each writer, unless -Lt says otherwise.
#ifndef LOG_FLUSH_INTERVAL
#define LOG_FLUSH_INTERVAL 200
#endif

// Bytes: the largest single write; with this much waiting after a flush the next one starts at once.
#ifndef FLUSH_BLOCK_SIZE
#define FLUSH_BLOCK_SIZE (512 << 10)
#endif

// Bytes of the blocks in which recovery reads, from each disk of a striped log.
#ifndef READ_BLOCK_SIZE
#define READ_BLOCK_SIZE (1 << 20)
#endif

// Bytes of all logs of a run together; a run that reaches it stops cleanly. Files are prepared up to this size.
#ifndef LOG_LIMIT
#define LOG_LIMIT (4LL << 30)
#endif

// 0 or 1. 1: records leave out the elements of their LSN vector that the last anchor covers (LOG_TAURUS).
#ifndef COMPRESS_LSN_LOG
#define COMPRESS_LSN_LOG 1
#endif

// Flushes of a log between two of its anchors (LOG_TAURUS, LOG_ELEDA), marks (LOG_BATCH) or watermarks (HEKATON with
// commands); 0: none before the clean end. Not of LOG_PLOVER's marks, which it acknowledges by: wherever other logs are
// ahead at a flush.
#ifndef PSN_FLUSH_FREQ
#define PSN_FLUSH_FREQ 1
#endif

// 0 or 1. 0: a worker waits until its transaction is durable before it runs the next one.
#ifndef LATENCY_HIDING
#define LATENCY_HIDING 1
#endif

// How transactions fill the one stream of LOG_ELEDA: ELEDA, or its rivals MUTEX, CONSOLIDATION (Aether) and BITMAP.
#ifndef CENTRAL_LOG
#define CENTRAL_LOG ELEDA
#endif

// Bytes, a power of two, at most half of LOG_BUFFER_SIZE: what SBL hops over at once (CENTRAL_LOG ELEDA).
#ifndef HOPPING_DISTANCE
#define HOPPING_DISTANCE (4 << 20)
#endif

// 0 or 1; Taurus's name of the flag --simd. 1: LSN vectors are handled by the best vector instructions of the processor
// (--simd=auto), 0: one element at a time (--simd=scalar).
#ifndef UPDATE_SIMD
#define UPDATE_SIMD 1
#endif

// Bytes: the smallest page of a paged table (LOG_DIFFERENTIAL); a page holds four rows at least.
#ifndef DIFF_PAGE_SIZE
#define DIFF_PAGE_SIZE (16 << 10)
#endif

// Milliseconds from one checkpoint to the next, taken while transactions run: of pages (LOG_DIFFERENTIAL), or of rows
// (LOG_DATA of LOG_SERIAL and LOG_TAURUS); 0: none after so long.
#ifndef CHECKPOINT_INTERVAL
#define CHECKPOINT_INTERVAL 0
#endif

// Bytes of log from one such checkpoint to the next; 0: none after so many. With both 0 there is none but the backup
// with which a run of LOG_DIFFERENTIAL begins.
#ifndef CHECKPOINT_BYTES
#define CHECKPOINT_BYTES 0
#endif

// Percent, 1 to 100: while it copies, the thread of such checkpoints works for about so much of its time, and rests for
// the rest, which leaves the processor to the workers; 100: it never rests.
#ifndef CHECKPOINT_CPU_PERC
#define CHECKPOINT_CPU_PERC 100
#endif

// How changes are logged and recovered (LOG_DIFFERENTIAL): DL1P, differential records and a restart in one pass; its
// baselines DL2P, the same in two passes, and PL2P, before and after images in two passes.
#ifndef DIFF_METHOD
#define DIFF_METHOD DL1P
#endif

// 0 or 1; 1: such a checkpoint truncates the logs below what a recovery still needs, and LOG_LIMIT counts the rest; 0:
// they stay whole.
#ifndef LOG_TRUNCATION
#define LOG_TRUNCATION 1
#endif

// The image in a record of a change (LOG_DIFFERENTIAL): SLOT, the whole slot, as in the paper, or RUNS, the words that
// changed.
#ifndef DIFF_IMAGE
#define DIFF_IMAGE SLOT
#endif

// Bytes of the persistent heap of a new run (LOG_WBL). 0: what the rows that its tables expect need, and their later
// versions.
#ifndef HEAP_BYTES
#define HEAP_BYTES 0
#endif

// Lines of persistent memory that each change of an index (an insert, a delete) writes back too, as indexes in
// persistent memory would (LOG_WBL, whose indexes are in DRAM). 0: none.
#ifndef INDEX_LINES
#define INDEX_LINES 0
#endif

// The instruction that writes a line of persistent memory back (LOG_WBL): AUTO, CLWB, CLFLUSHOPT or CLFLUSH. AUTO: the
// best that the processor has.
#ifndef PM_FLUSH
#define PM_FLUSH AUTO
#endif

// 0 or 1. 1: after a restart a heap's rows are found when they are needed, and the rest beside transactions; 0: all of
// them before the first transaction (LOG_WBL).
#ifndef ADOPT_ON_DEMAND
#define ADOPT_ON_DEMAND 1
#endif

// 1 to 4: what overlaps in a restart from a backup (LOG_DIFFERENTIAL). 1: nothing; 2: reading and applying; 3: the
// backup is read beside the logs; 4: both are applied in any order, which PL2P cannot. 0: the highest of the run's
// DIFF_METHOD.
#ifndef RESTART_LEVEL
#define RESTART_LEVEL 0
#endif

// Buckets of the lock table per worker (USE_LOCKTABLE).
#ifndef LOCKTABLE_MODIFIER
#define LOCKTABLE_MODIFIER 16384
#endif

// Bytes: the lock table drops a tuple's log metadata once it is this far below what is durable (USE_LOCKTABLE).
#ifndef LOCKTABLE_EVICT_BUFFER
#define LOCKTABLE_EVICT_BUFFER 32768
#endif

// ---- Without effect here ----------------------------------------------------------------------------------
// Switches of DBx1000 and of Taurus, kept for scripts that set them. Nothing reads them.

// Default 1, no effect: statistics are always kept; they are each worker's own and cost nothing measurable.
#ifndef STATS_ENABLE
#define STATS_ENABLE 1
#endif

// Default 0, no effect: the lock table drops whole vectors by LOCKTABLE_EVICT_BUFFER and compresses none.
#ifndef COMPRESS_LSN_LT
#define COMPRESS_LSN_LT 0
#endif
