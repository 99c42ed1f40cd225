// The reference's recovery of a persistent heap of versions (write-behind logging), with a parser of its own, written
// from logging/write_behind/README.md.
#pragma once

#include "storage/database.h"
#include "system/reference/reference_run.h"

namespace dbx::reference {

// Puts the rows that a restart of the run would find into a database whose tables are empty and in no heap: of every
// key the newest version that counts, unless that is a tombstone. Throws Error: kCorrupt for a heap or a log of gaps
// that no run leaves, kMismatch for those of another run, or of tables of another shape.
void LoadHeap(const RunImage& run, Database& database);

}  // namespace dbx::reference
