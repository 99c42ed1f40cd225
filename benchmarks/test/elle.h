// A history in the JSON lines of Elle (K. Kingsbury and P. Alvaro, VLDB 2020), as registers whose writes follow their
// reads, so that independent checkers can judge it: tests/scripts/second_opinion.py.
//
// A register begins as null and is written once by each transaction; a version is the number of the transaction that
// wrote it. Absence has no version there either, so each life of an object is a register of its own: null before an
// insert, or as it was loaded, and "deleted by T" behind a delete. A miss, and an insert with regard to the other
// lives, reads null where a life never ends and "deleted by T" where it never began; its order to other lives is
// unknown and is left out, so Elle's model is weaker there. Final versions are not included.
#pragma once

#include <iosfwd>

#include "benchmarks/test/history.h"

namespace dbx {

// Committed transactions, and as failed ones those whose versions were seen though they are not in the history.
void WriteElle(const History& history, std::ostream& out);

}  // namespace dbx
