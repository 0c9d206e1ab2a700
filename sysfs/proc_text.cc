#include "sysfs/proc_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

std::vector<std::string_view> SplitAny(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
       at = text.find_first_not_of(separators, at)) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::string> ReadToEnd(int fd, std::string_view name, size_t limit) {
  std::string text;
  std::array<char, size_t{32} * 1024> chunk;
  for (;;) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrFormat("read %s", name));
    if (n == 0) return text;
    text.append(chunk.data(), static_cast<size_t>(n));
    if (text.size() > limit) return absl::OutOfRangeError(absl::StrFormat("too long: %s", name));
  }
}

absl::StatusOr<std::string> ReadProcText(const Tree& tree, std::string_view path, size_t limit) {
  return Watched(tree.watch(), ReadKind::kText, path, [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Fd fd, tree.OpenUnwatched(path, O_RDONLY | O_NOCTTY | O_NONBLOCK));
    return ReadToEnd(fd.get(), path, limit);
  });
}

std::vector<std::string_view> Lines(std::string_view text) { return SplitAny(text, "\n"); }
std::vector<std::string_view> Fields(std::string_view line) { return SplitAny(line, " \t\r"); }
std::vector<std::string_view> Split(std::string_view text, char separator) {
  return SplitAny(text, std::string_view(&separator, 1));
}

std::optional<uint64_t> ParseNumber(std::string_view text, int base) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::string Printable(std::string_view text, size_t limit) {
  std::string plain(text.substr(0, limit));
  for (char& c : plain) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return plain;
}

}  // namespace vfio_agent
