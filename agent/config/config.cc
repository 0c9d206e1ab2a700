#include "agent/config/config.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/config/config_mdev.h"
#include "agent/config/config_mode.h"
#include "agent/config/config_resources.h"
#include "agent/config/settings.h"
#include "agent/config/yaml.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kLargest = 1u << 20;
constexpr absl::Duration kPatience = absl::Seconds(10);

absl::Status ReadVersion(const YamlValue& value) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text == "vfio-agent/v1") return absl::OkStatus();
  return YamlError(value, absl::StrFormat("'%s': want vfio-agent/v1", text));
}

// The reader of one settings key: the value is checked where it is used, but its error is told
// with the place in the file.
YamlKey SettingKey(std::string_view name, std::string key, Config& config) {
  return {name, [key = std::move(key), &config](const YamlValue& value) -> absl::Status {
            ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
            Settings scratch;
            for (const SettingRow& row : SettingRows()) {
              if (key != row.key) continue;
              if (const absl::Status status = row.set(scratch, text); !status.ok()) {
                return YamlError(value, Message(status));
              }
            }
            config.settings[key] = text;
            return absl::OkStatus();
          }};
}

// The keys of a section are those of the settings table: "bind.parallel" below `bind`.
YamlKey Section(std::string_view name, Config& config) {
  return {name, [name, &config](const YamlValue& value) {
            std::vector<YamlKey> keys;
            for (const SettingRow& row : SettingRows()) {
              const std::string_view key(row.key);
              if (key.starts_with(name) && key.size() > name.size() && key[name.size()] == '.') {
                keys.push_back(SettingKey(key.substr(name.size() + 1), row.key, config));
              }
            }
            return ReadMap(value, keys);
          }};
}

absl::Status ReadRoot(const YamlValue& root, Config& config) {
  Policy& policy = config.whole;
  return ReadMap(root, {{"apiVersion", ReadVersion},
                        {"mode", [&](const YamlValue& v) { return ReadMode(v, config.mode); }},
                        {"resources", [&](const YamlValue& v) { return ReadResources(v, policy); }},
                        {"aliases", [&](const YamlValue& v) { return ReadAliases(v, policy); }},
                        {"mdev", [&](const YamlValue& v) { return ReadMdevRules(v, policy); }},
                        {"vgpu", [&](const YamlValue& v) { return ReadVgpuRules(v, policy); }},
                        {"guard", [&](const YamlValue& v) { return ReadGuard(v, policy); }},
                        Section("bind", config),
                        Section("kubelet", config),
                        Section("cdi", config),
                        Section("nfd", config),
                        Section("dra", config),
                        Section("metrics", config),
                        Section("log", config),
                        SettingKey("stateDir", "stateDir", config),
                        SettingKey("pciIds", "pciIds", config),
                        SettingKey("resync", "resync", config),
                        Section("api", config)});
}

// A pipe whose writer takes its time.
absl::Status AwaitText(int fd, const std::string& file, absl::Time deadline) {
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd input = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = left <= 0 ? 0 : ::poll(&input, 1, static_cast<int>(left));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(absl::StrFormat("read %s", file));
    if (ready == 0) {
      return absl::DeadlineExceededError(absl::StrFormat("read %s: its end did not come within %s",
                                                         file, absl::FormatDuration(kPatience)));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadConfigText(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", file));
  const absl::Time deadline = absl::Now() + kPatience;
  std::string text;
  std::array<char, 4096> part = {};
  while (text.size() <= kLargest) {
    const ssize_t n = ::read(fd.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      RETURN_IF_ERROR(AwaitText(fd.get(), file, deadline));
      continue;
    }
    if (n < 0) return ErrnoStatus(absl::StrFormat("read %s", file));
    if (n == 0) return text;
    text.append(part.data(), static_cast<size_t>(n));
  }
  return absl::InvalidArgumentError(absl::StrFormat("%s: longer than 1 MiB", file));
}

void Config::UseMode(Mode now) {
  in_force = now;
  policy = PolicyFor(UseIn(now, mode), whole);
}

size_t FingerprintOf(const std::string& text) { return std::hash<std::string>()(text); }

absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& file_name) {
  Config config{.file_name = file_name, .whole = DefaultPolicy()};
  ASSIGN_OR_RETURN(const YamlValue root, ParseYaml(text, file_name));
  RETURN_IF_ERROR(ReadRoot(root, config));
  config.UseMode(config.mode.mode);
  return config;
}

absl::StatusOr<Config> ReadConfig(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadConfigText(file);
  if (text.ok()) {
    ASSIGN_OR_RETURN(Config config, ParseConfig(*text, file));
    config.fingerprint = FingerprintOf(*text);
    return config;
  }
  if (ErrnoOf(text.status()) == ENOENT && file == kDefaultConfigFile) {
    return Config{
        .file_name = "built-in defaults", .whole = DefaultPolicy(), .policy = DefaultPolicy()};
  }
  return text.status();
}

}  // namespace vfio_agent
