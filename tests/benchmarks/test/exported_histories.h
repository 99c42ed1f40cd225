// Hands the histories that tests judge to tests/scripts/second_opinion.py: where the environment names a directory in
// DBX_HISTORIES, each is written there in Elle's format, LEVEL-VERDICT-TEST-N.json, or the first thousand; where a
// checker of Elle's model may find nothing in a history that is wrong, LEVEL-VERDICT-TEST-N.why says why.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "benchmarks/test/elle.h"

namespace dbx {

inline void ExportHistory(const History& history, bool snapshots, bool is_right, const std::string& why = "") {
  const char* const directory = std::getenv("DBX_HISTORIES");
  if (directory == nullptr) return;
  static int number = 0;
  if (number == 1000) return;
  const std::string path =
      std::string(directory) + "/" + (snapshots ? "snapshot-" : "serializable-") + (is_right ? "right-" : "wrong-") +
      testing::UnitTest::GetInstance()->current_test_info()->name() + "-" + std::to_string(++number);
  std::ofstream file(path + ".json");
  WriteElle(history, file);
  if (!why.empty()) std::ofstream(path + ".why") << why << '\n';
}

}  // namespace dbx
