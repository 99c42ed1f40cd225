// The request to end a run early (SIGINT, SIGTERM, or a test).
//
// Workers poll it between transactions; a run that sees it hardens and acknowledges its pending commits, writes RUN_END
// and prints its summary. Relaxed loads suffice: nothing else is published with it.
#pragma once

#include <atomic>

namespace dbx {

std::atomic<bool>& StopRequested();

// Thrown where a request has ended the work before there was anything to report, and PASS would be wrong.
struct Interrupted {
  const char* what;
};

// The signal that set it last, 0 if none did.
int StopSignal();

// From now on SIGINT and SIGTERM set StopRequested; a second signal of the kind ends the process as usual.
void InstallStopHandlers();

}  // namespace dbx
