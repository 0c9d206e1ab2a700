#include "agent/cluster/credentials.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kScheme = "https://";
constexpr size_t kUrlBytes = 512;
constexpr size_t kTokenBytes = 65536;
constexpr size_t kCaBytes = size_t{1} << 20;
constexpr int kHighestPort = 65535;

std::string Environment(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr ? value : "";
}

// What may stand behind the scheme: no user, no query, nothing that would need an escape.
bool IsUrlCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-._:[]/").find(c) != std::string_view::npos;
}

absl::StatusOr<std::string> CheckUrl(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  const bool https = url.starts_with(kScheme) && url.size() > kScheme.size();
  const std::string_view rest = https ? url.substr(kScheme.size()) : "";
  if (!https || rest.front() == '/' || url.size() > kUrlBytes ||
      !std::ranges::all_of(rest, IsUrlCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is no address of an API server: https://HOST[:PORT]", url));
  }
  return std::string(url);
}

// The whole of a regular file.
absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  struct stat facts = {};
  if (::fstat(fd.get(), &facts) != 0) return ErrnoStatus(absl::StrFormat("stat %s", path));
  if (!S_ISREG(facts.st_mode)) {
    return absl::DataLossError(absl::StrFormat("%s is no regular file", path));
  }
  std::string text(limit + 1, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + length, text.size() - length);
    if (n < 0) return ErrnoStatus(absl::StrFormat("read %s", path));
    if (n == 0) break;
    length += static_cast<size_t>(n);
  }
  if (length > limit) return absl::DataLossError(absl::StrFormat("%s is too large", path));
  text.resize(length);
  return text;
}

bool IsTokenCharacter(char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); }

}  // namespace

absl::StatusOr<std::string> ServerUrl(const std::string& given, const std::string& host,
                                      const std::string& port) {
  if (!given.empty()) return CheckUrl(given);
  if (host.empty()) {
    return absl::UnavailableError(
        "no API server: KUBERNETES_SERVICE_HOST is not set, as it is in every pod");
  }
  int number = 443;
  if (!port.empty() && (!absl::SimpleAtoi(port, &number) || number < 1 || number > kHighestPort)) {
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is no port of an API server", port));
  }
  const bool v6 = host.find(':') != std::string::npos && host.front() != '[';
  return CheckUrl(v6 ? absl::StrFormat("%s[%s]:%d", kScheme, host, number)
                     : absl::StrFormat("%s%s:%d", kScheme, host, number));
}

absl::StatusOr<std::string> ServerUrlHere(const std::string& given) {
  const std::string port = Environment("KUBERNETES_SERVICE_PORT_HTTPS");
  return ServerUrl(given, Environment("KUBERNETES_SERVICE_HOST"),
                   port.empty() ? Environment("KUBERNETES_SERVICE_PORT") : port);
}

absl::StatusOr<Credentials> ReadCredentials(const std::string& token_file,
                                            const std::string& ca_file) {
  ASSIGN_OR_RETURN(const std::string text, ReadWhole(token_file, kTokenBytes));
  ASSIGN_OR_RETURN(std::string ca, ReadWhole(ca_file, kCaBytes));
  std::string token(absl::StripAsciiWhitespace(text));
  // It becomes part of a header.
  if (token.empty() || !std::ranges::all_of(token, IsTokenCharacter)) {
    return absl::DataLossError(absl::StrFormat("%s has no token in it", token_file));
  }
  if (ca.find("-----BEGIN") == std::string::npos) {
    return absl::DataLossError(absl::StrFormat("%s has no certificate in it", ca_file));
  }
  return Credentials{std::move(token), std::move(ca)};
}

}  // namespace vfio_agent
