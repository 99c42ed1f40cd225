// Locks on directories, over both file systems.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "base/error.h"
#include "logging/device/posix_file_system.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx {
namespace {

constexpr auto kShared = FileSystem::LockKind::kShared;
constexpr auto kExclusive = FileSystem::LockKind::kExclusive;

template <class Files>
class DirectoryLockTest : public ::testing::Test {
 protected:
  DirectoryLockTest() { CreateDirectories(files_, run_); }

  Files files_;
  TempDir dir_;
  const std::string run_ = dir_ / "run";
};
using BothFileSystems = ::testing::Types<PosixFileSystem, FaultyFileSystem>;
TYPED_TEST_SUITE(DirectoryLockTest, BothFileSystems);

TYPED_TEST(DirectoryLockTest, ManyShareItOrOneIsAlone) {
  DirectoryLock one = this->files_.LockDirectory(this->run_, kShared);
  DirectoryLock other = this->files_.LockDirectory(this->run_, kShared);
  EXPECT_TRUE(one && other);
  one.reset();
  EXPECT_FALSE(this->files_.LockDirectory(this->run_, kExclusive));
  other.reset();
  const DirectoryLock alone = this->files_.LockDirectory(this->run_, kExclusive);
  EXPECT_TRUE(alone);
  EXPECT_FALSE(this->files_.LockDirectory(this->run_, kShared));
  EXPECT_FALSE(this->files_.LockDirectory(this->run_, kExclusive));
}

TYPED_TEST(DirectoryLockTest, ADirectoryMadeAnewIsAnother) {
  const DirectoryLock old = this->files_.LockDirectory(this->run_, kExclusive);
  this->files_.RemoveDirectory(this->run_);
  EXPECT_THROW(this->files_.LockDirectory(this->run_, kShared), Error);
  this->files_.MakeDirectory(this->run_);
  EXPECT_TRUE(this->files_.LockDirectory(this->run_, kExclusive));
}

TEST(DirectoryLock, ACrashLeavesNone) {
  FaultyFileSystem files;
  CreateDirectories(files, "run");
  const DirectoryLock held = files.LockDirectory("run", kExclusive);
  FaultyFileSystem after(files.CrashImage(FaultyFileSystem::Crash::kDurableOnly));
  EXPECT_TRUE(after.LockDirectory("run", kExclusive));
}

TEST(DirectoryLock, AKilledProcessLeavesNone) {
  const TempDir dir;
  PosixFileSystem files;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const DirectoryLock held = files.LockDirectory(dir.path(), kExclusive);
    if (::write(ends[1], held ? "y" : "n", 1) == 1) ::pause();
    ::_exit(1);
  }
  char is_held = 0;
  ASSERT_EQ(::read(ends[0], &is_held, 1), 1);
  EXPECT_EQ(is_held, 'y');
  EXPECT_FALSE(files.LockDirectory(dir.path(), kShared));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(files.LockDirectory(dir.path(), kExclusive));
}

// From now on flock fails in this process.
void TakeFlockAway(uint32_t error) {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(filter), filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(DirectoryLock, WhereThereAreNoneItGoesOnWithOneNotice) {
  const TempDir dir;
  for (const uint32_t error : {ENOLCK, EOPNOTSUPP, EBADF}) {
    const auto lock_twice = [&] {
      TakeFlockAway(error);
      PosixFileSystem files;
      const DirectoryLock one = files.LockDirectory(dir.path(), kExclusive);
      const DirectoryLock other = files.LockDirectory(dir.path(), kExclusive);
      ::_exit(one && other ? 0 : 1);
    };
    EXPECT_EXIT(lock_twice(), ::testing::ExitedWithCode(0), "^notice: no locks on the file system of [^\n]*\n$");
  }
}

}  // namespace
}  // namespace dbx
