#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>

#include "absl/strings/str_format.h"
#include "agent/snapshot/archive.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kMostParts = 64;  // of a name; below sys there are some twenty

using Reader = std::unique_ptr<archive, int (*)(archive*)>;

absl::Status Refuse(const std::string& name, const char* why) {
  return absl::InvalidArgumentError(absl::StrFormat("'%s': %s", Printable(name), why));
}

// One archive on its way into a directory of our own.
class Unpacker {
 public:
  Unpacker(archive* reader, Fd directory, const ArchiveLimits& limits)
      : reader_(reader), directory_(std::move(directory)), limits_(limits) {}

  absl::Status Run() {
    archive_entry* entry = nullptr;
    for (;;) {
      const int result = ::archive_read_next_header(reader_, &entry);
      if (result == ARCHIVE_EOF) return absl::OkStatus();
      if (result != ARCHIVE_OK) return ReadError();
      RETURN_IF_ERROR(CountOne());
      RETURN_IF_ERROR(Take(entry));
    }
  }

 private:
  absl::Status CountOne() {
    if (++entries_ <= limits_.entries) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrFormat("more than %d entries", limits_.entries));
  }

  absl::Status ReadError() const {
    const char* const why = ::archive_error_string(reader_);
    return absl::InvalidArgumentError(
        absl::StrFormat("no tar.gz: %s", Printable(why == nullptr ? "cannot be read" : why)));
  }

  absl::Status Take(archive_entry* entry) {
    const char* const pathname = ::archive_entry_pathname(entry);
    std::string name = pathname == nullptr ? "" : pathname;
    while (name.starts_with("./")) name.erase(0, 2);
    while (name.ends_with('/')) name.pop_back();
    if (::archive_entry_hardlink(entry) != nullptr) return Refuse(name, "a hard link");
    if (::archive_entry_sparse_count(entry) > 0) return Refuse(name, "a file with holes");
    const auto type = ::archive_entry_filetype(entry);
    if (type == AE_IFDIR && (name.empty() || name == ".")) return absl::OkStatus();
    RETURN_IF_ERROR(CheckName(name));
    switch (type) {
      case AE_IFDIR:
        return MakeDirectory(name).status();
      case AE_IFREG:
        return WriteFile(name);
      case AE_IFLNK:
        return MakeLink(name, ::archive_entry_symlink(entry));
      default:
        return Refuse(name, "no plain file, directory or link");
    }
  }

  static absl::Status CheckName(const std::string& name) {
    if (name.empty() || name.front() == '/') return Refuse(name, "no path below the root");
    if (name.size() >= PATH_MAX) return Refuse(name, "too long");
    if (std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
      return Refuse(name, "has control characters");
    }
    size_t parts = 0;
    for (size_t at = 0; at <= name.size();) {
      if (++parts > kMostParts) return Refuse(name, "too deep");
      const size_t end = std::min(name.find('/', at), name.size());
      const std::string_view part = std::string_view(name).substr(at, end - at);
      if (part.empty() || part == "." || part == "..") {
        return Refuse(name, "no path below the root");
      }
      at = end + 1;
    }
    return absl::OkStatus();
  }

  // Follows no link and leaves the directory by none.
  absl::StatusOr<Fd> OpenDirectory(const std::string& name) const {
    open_how how = {};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    Fd fd(static_cast<int>(::syscall(SYS_openat2, directory_.get(),
                                     name.empty() ? "." : name.c_str(), &how, sizeof how)));
    if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", Printable(name)));
    return fd;
  }

  // The directory, made with those above it where it is missing. Each counts as an entry: a short
  // archive could ask for millions of them.
  absl::StatusOr<Fd> MakeDirectory(const std::string& name) {
    absl::StatusOr<Fd> there = OpenDirectory(name);
    if (there.ok()) return there;
    if (ErrnoOf(there.status()) != ENOENT)
      return Refuse(name, "leads through what is no directory");
    ASSIGN_OR_RETURN(const Fd parent, MakeDirectory(ParentOf(name)));
    RETURN_IF_ERROR(CountOne());
    if (::mkdirat(parent.get(), LastOf(name), 0700) != 0) return Failed("mkdir", name);
    return OpenDirectory(name);
  }

  absl::Status WriteFile(const std::string& name) {
    ASSIGN_OR_RETURN(const Fd parent, MakeDirectory(ParentOf(name)));
    const Fd file(::openat(parent.get(), LastOf(name),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return Failed("create", name);
    std::array<char, size_t{64} * 1024> part;
    for (size_t size = 0;;) {
      const la_ssize_t n = ::archive_read_data(reader_, part.data(), part.size());
      if (n < 0) return ReadError();
      if (n == 0) return absl::OkStatus();
      size += static_cast<size_t>(n);
      total_ += static_cast<size_t>(n);
      if (size > limits_.file_bytes || total_ > limits_.total_bytes) {
        return absl::ResourceExhaustedError(absl::StrFormat("'%s': too large", Printable(name)));
      }
      if (::write(file.get(), part.data(), static_cast<size_t>(n)) != n) {
        return Failed("write", name);
      }
    }
  }

  absl::Status MakeLink(const std::string& name, const char* target) {
    if (target == nullptr || *target == '\0') return Refuse(name, "a link to nothing");
    ASSIGN_OR_RETURN(const Fd parent, MakeDirectory(ParentOf(name)));
    if (::symlinkat(target, parent.get(), LastOf(name)) != 0) return Failed("link", name);
    return absl::OkStatus();
  }

  static absl::Status Failed(const char* what, const std::string& name) {
    if (errno == EEXIST) return Refuse(name, "stands there twice");
    return ErrnoStatus(absl::StrFormat("%s %s", what, Printable(name)));
  }

  static std::string ParentOf(const std::string& name) {
    const size_t slash = name.rfind('/');
    return slash == std::string::npos ? "" : name.substr(0, slash);
  }
  static const char* LastOf(const std::string& name) {
    return name.c_str() + (name.rfind('/') + 1);  // npos + 1 is 0
  }

  archive* reader_;
  Fd directory_;
  const ArchiveLimits& limits_;
  size_t entries_ = 0;
  size_t total_ = 0;
};

}  // namespace

absl::Status UnpackArchive(const std::string& path, const std::string& directory,
                           const ArchiveLimits& limits) {
  constexpr size_t kBlock = size_t{64} * 1024;
  Fd target(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!target.valid()) return ErrnoStatus(absl::StrFormat("open %s", directory));
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  const Reader reader(::archive_read_new(), ::archive_read_free);
  if (reader == nullptr) return absl::ResourceExhaustedError("no memory");
  // These two and nothing else: every further format is code that an attacker could reach.
  ::archive_read_support_filter_gzip(reader.get());
  ::archive_read_support_format_tar(reader.get());
  if (::archive_read_open_fd(reader.get(), file.get(), kBlock) != ARCHIVE_OK) {
    const char* const why = ::archive_error_string(reader.get());
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: no tar.gz: %s", path, Printable(why == nullptr ? "" : why)));
  }
  return Annotate(Unpacker(reader.get(), std::move(target), limits).Run(), path);
}

}  // namespace vfio_agent
