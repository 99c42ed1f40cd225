// Result files are whole, or as they were.
#include "system/command_line/output_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"

namespace dbx {
namespace {

class OutputFile : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/output_test_XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Path(const char* name) const { return directory_ + "/" + name; }
  static std::string Read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::string directory_;
};

TEST_F(OutputFile, RecordsAreAppendedAndSummariesReplaced) {
  AppendRecord(Path("r"), "{\"a\":1}");
  AppendRecord(Path("r"), "{\"a\":2}");
  EXPECT_EQ(Read(Path("r")), "{\"a\":1}\n{\"a\":2}\n");
  WriteSummary(Path("s"), "old and longer\n");
  WriteSummary(Path("s"), "new\n");
  EXPECT_EQ(Read(Path("s")), "new\n");
}

TEST_F(OutputFile, ARecordIsALineOfItsOwnBehindHalfALine) {
  std::ofstream(Path("r")) << "{\"a\":1}\n{\"a\"";
  AppendRecord(Path("r"), "{}");
  EXPECT_EQ(Read(Path("r")), "{\"a\":1}\n{\"a\"\n{}\n");
}

TEST_F(OutputFile, TheCheckLeavesNothingBehindAndLosesNothing) {
  CheckAppendable(Path("new"));
  EXPECT_FALSE(std::filesystem::exists(Path("new")));
  AppendRecord(Path("old"), "{}");
  CheckAppendable(Path("old"));
  EXPECT_EQ(Read(Path("old")), "{}\n");
}

TEST_F(OutputFile, AFileThatCouldNotBeWrittenIsGoneIfItWasNew) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  AppendRecord(Path("old"), "{}");
  const rlimit small{4, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(AppendRecord(Path("new"), "longer than the limit"), Error);
  EXPECT_THROW(AppendRecord(Path("old"), "longer than the limit"), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(std::filesystem::exists(Path("new")));
  EXPECT_EQ(Read(Path("old")), "{}\n") << "no half line is left for the next record to be appended to";
}

TEST_F(OutputFile, WhatCannotBeWrittenIsNamed) {
  try {
    CheckAppendable(Path("missing/r"));
    FAIL() << "a file in a directory that does not exist was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ExitStatus::kIo);
    EXPECT_TRUE(std::string(e.what()).find(Path("missing/r")) != std::string::npos);
  }
}

}  // namespace
}  // namespace dbx
