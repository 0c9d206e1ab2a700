// Credentials: where the API server is, and what shows it who we are.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace vfio_agent {

// "https://10.96.0.1:443", an IPv6 address in brackets, without a slash at its end. `given` wins;
// else `host` and `port`, as the kubelet sets KUBERNETES_SERVICE_HOST and
// KUBERNETES_SERVICE_PORT_HTTPS. Unavailable where there is neither; InvalidArgument for what is no
// https URL.
absl::StatusOr<std::string> ServerUrl(const std::string& given, const std::string& host,
                                      const std::string& port);
// The same from the environment of this process.
absl::StatusOr<std::string> ServerUrlHere(const std::string& given);

struct Credentials {
  std::string token;
  std::string ca;  // PEM
};

// Read anew for each request: the kubelet puts new ones in the place of those that will soon be
// worth nothing. Links are followed, since a service account's files are links. DataLoss for what
// cannot be a token or a CA.
absl::StatusOr<Credentials> ReadCredentials(const std::string& token_file,
                                            const std::string& ca_file);

}  // namespace vfio_agent
