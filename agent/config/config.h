// Config: the configuration file as a policy and settings.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "iommu/policy.h"

namespace vfio_agent {

inline constexpr char kDefaultConfigFile[] = "/etc/vfio-agent/config.yaml";

struct Config {
  std::string file_name;
  Policy policy;
  std::map<std::string, std::string> settings;  // by key, for SettingSources::file
  bool passthrough = true;  // mode: vm-passthrough; false for container: nothing is offered
  bool vgpu = false;        // mode: vm-vgpu: of the policy only `mdev` and `vgpu`
  std::optional<size_t> fingerprint;  // of the file's text; nullopt: there was no file
};

// The file's text, up to 1 MiB.
absl::StatusOr<std::string> ReadConfigText(const std::string& file);

// What tells one text from another.
size_t FingerprintOf(const std::string& text);

// Reads `file`. A missing default file gives the built-in configuration; a missing other one is
// an error. InvalidArgument: "config.yaml:3:5: resources[0].selekt: unknown key (known here: …)".
absl::StatusOr<Config> ReadConfig(const std::string& file);

// The same from text.
absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& file_name);

}  // namespace vfio_agent
