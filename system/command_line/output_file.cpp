#include "system/command_line/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace dbx {
namespace {

class OutputFile {
 public:
  OutputFile(const std::string& path, int flags) : path_(path) {
    struct stat status {};
    is_new_ = ::lstat(path.c_str(), &status) != 0 && errno == ENOENT;
    fd_ = ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) Throw(errno);
  }
  ~OutputFile() {
    if (is_new_ && !is_complete_) ::unlink(path_.c_str());
    ::close(fd_);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // The record as a line of its own, however the file ends: all of it, or nothing.
  void AppendLine(const std::string& record) {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) Throw(errno);
    const std::string line = (EndsInALine(status) ? "" : "\n") + record + "\n";
    const auto [written, error] = Write(line);
    // Removes only this call's partial line: another process may have appended meanwhile.
    struct stat now {};
    if (error != 0 && S_ISREG(status.st_mode) && ::fstat(fd_, &now) == 0 &&
        now.st_size == status.st_size + static_cast<off_t>(written)) {
      if (::ftruncate(fd_, status.st_size) != 0) Throw(errno);
    }
    if (error != 0) Throw(error);
    is_complete_ = true;
  }

  void WriteAll(const std::string& text) {
    if (const int error = Write(text).second; error != 0) Throw(error);
    is_complete_ = true;
  }

 private:
  [[noreturn]] void Throw(int error) const { ThrowOutput(path_, error); }

  bool EndsInALine(const struct stat& status) const {
    char last = '\n';
    if (!S_ISREG(status.st_mode) || status.st_size == 0) return true;
    if (::pread(fd_, &last, 1, status.st_size - 1) < 0) Throw(errno);
    return last == '\n';
  }

  // Bytes written, and the error that ended it.
  std::pair<size_t, int> Write(const std::string& text) const {
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t count = ::write(fd_, text.data() + done, text.size() - done);
      if (count < 0 && errno != EINTR) return {done, errno};
      if (count > 0) done += static_cast<size_t>(count);
    }
    return {done, 0};
  }

  const std::string path_;
  int fd_ = -1;
  bool is_new_ = false;
  bool is_complete_ = false;
};

}  // namespace

void CheckAppendable(const std::string& path) { OutputFile(path, O_RDWR | O_APPEND); }
void AppendRecord(const std::string& path, const std::string& record) {
  OutputFile(path, O_RDWR | O_APPEND).AppendLine(record);
}
void WriteSummary(const std::string& path, const std::string& text) {
  OutputFile(path, O_WRONLY | O_TRUNC).WriteAll(text);
}

void ThrowOutput(const std::string& name, int error) {
  throw Error(error == ENOSPC || error == EDQUOT ? ExitStatus::kNoSpace : ExitStatus::kIo,
              "cannot write " + name + ": " + std::strerror(error));
}

}  // namespace dbx
