#include <regex>

#include "absl/strings/str_format.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {
namespace {

// "requests." is put in front of the domain, and the result must still be a DNS subdomain.
constexpr size_t kLongestDomain = 253 - sizeof("requests.") + 1;
constexpr size_t kLongestName = 63;

bool IsExtendedResource(const std::string& name) {
  static const std::regex kDomain(
      "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  static const std::regex kLast("[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?");
  const size_t slash = name.find('/');
  if (slash == std::string::npos || slash > kLongestDomain) return false;
  if (name.find("kubernetes.io/") != std::string::npos || name.starts_with("requests.")) {
    return false;
  }
  const std::string rest = name.substr(slash + 1);
  return rest.size() <= kLongestName && std::regex_match(name.substr(0, slash), kDomain) &&
         std::regex_match(rest, kLast);
}

}  // namespace

std::string CheckResourceName(const std::string& name) {
  return IsExtendedResource(name) ? ""
                                  : absl::StrFormat("the ResourceName \"%s\" is invalid", name);
}

}  // namespace vfio_agent
