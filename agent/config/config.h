// Config: the configuration file as a policy and settings.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agent/mode/mode.h"
#include "iommu/policy/policy.h"

namespace vfio_agent {

inline constexpr char kDefaultConfigFile[] = "/etc/vfio-agent/config.yaml";

struct Config {
  std::string file_name;
  Policy whole;   // of all modes
  ModeRule mode;  // which one it is to be
  Mode in_force = Mode::kPassthrough;
  Policy policy;  // what of `whole` counts in the mode that is in force
  std::map<std::string, std::string> settings;  // by key, for SettingSources::file
  std::optional<size_t> fingerprint;            // of the file's text; nullopt: there was no file

  // At first the one that is fixed, or what counts while no label has been read.
  void UseMode(Mode now);
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
