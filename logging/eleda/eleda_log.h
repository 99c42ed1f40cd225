// ELEDA (Jung, Han and Kang, PVLDB 11(2), 2017): one central log without a lock.
//
// Three stages: transactions fill their places in the ring, which one fetch-and-add gave them; the ELEDA worker
// advances SBL over the prefix that is filled without a hole (grasshopper.h); the stream's writer flushes up to SBL and
// advances SDL, the durable LSN. A transaction is acknowledged when SDL >= the end of its record: the paper's callback
// is here the entry in the worker's queue of acknowledgements (system/transaction/ack_queue.h), and the node in its
// grasshopper list is counted when collected.
//
// Order and recovery are those of serial logging: the log is one sequence and is replayed as one.
#pragma once

#include "logging/eleda/central_log.h"
#include "logging/total_order_log.h"

namespace dbx {

template <class Payload>
using EledaLog = TotalOrderLog<Payload, CentralLog>;

}  // namespace dbx
