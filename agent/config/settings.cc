#include "agent/config/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/config/listen_address.h"
#include "agent/usage/suggest.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kVariable = "VFIO_AGENT_";  // begins the names of all of ours

absl::Status Want(const std::string& value, const char* wanted) {
  return absl::InvalidArgumentError(absl::StrFormat("'%s': want %s", value, wanted));
}

absl::Status WantWord(const std::string& value, const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s': want %s%s", value, EitherOf(known), DidYouMean(value, known)));
}

template <std::string Settings::*field>
absl::Status SetPath(Settings& settings, const std::string& value) {
  if (value.empty() || value.front() != '/') return Want(value, "an absolute path");
  settings.*field = value;
  return absl::OkStatus();
}

template <absl::Duration Settings::*field>
absl::Status SetDuration(Settings& settings, const std::string& value) {
  absl::Duration duration;
  if (!absl::ParseDuration(value, &duration) || duration < absl::Milliseconds(10) ||
      duration > absl::Hours(24)) {
    return Want(value, "a duration from 10ms to 24h, such as 30s");
  }
  settings.*field = duration;
  return absl::OkStatus();
}

absl::Status SetParallel(Settings& settings, const std::string& value) {
  int number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 1 || number > 64) {
    return Want(value, "a number from 1 to 64");
  }
  settings.parallel = number;
  return absl::OkStatus();
}

absl::Status SetOnExit(Settings& settings, const std::string& value) {
  if (value != "keep" && value != "release") return WantWord(value, {"keep", "release"});
  settings.on_exit = value == "keep" ? OnExit::kKeep : OnExit::kRelease;
  return absl::OkStatus();
}

absl::Status SetLogLevel(Settings& settings, const std::string& value) {
  settings.log_level = value;
  const bool known = value == "debug" || value == "info" || value == "warn" || value == "error";
  return known ? absl::OkStatus() : WantWord(value, {"debug", "info", "warn", "error"});
}

absl::Status SetLogFormat(Settings& settings, const std::string& value) {
  settings.log_format = value;
  const bool known = value == "text" || value == "json";
  return known ? absl::OkStatus() : WantWord(value, {"text", "json"});
}

template <bool Settings::*field>
absl::Status SetFlag(Settings& settings, const std::string& value) {
  settings.*field = value == "true";
  const bool known = value == "true" || value == "false";
  return known ? absl::OkStatus() : WantWord(value, {"true", "false"});
}

absl::Status SetRegistering(Settings& settings, const std::string& value) {
  settings.registering = value == "registry" ? Registering::kRegistry : Registering::kSocket;
  const bool known = value == "socket" || value == "registry";
  return known ? absl::OkStatus() : WantWord(value, {"socket", "registry"});
}

template <std::string Settings::*field>
absl::Status SetPathOrNone(Settings& settings, const std::string& value) {
  settings.*field = value;
  return value.empty() || value.front() == '/' ? absl::OkStatus()
                                               : Want(value, "an absolute path, or nothing");
}

// A DNS subdomain of at most 63 bytes that begins with a letter, as a vendor of CDI must.
absl::Status SetDraDriver(Settings& settings, const std::string& value) {
  settings.dra_driver = value;
  const auto is_letter = [](char c) { return absl::ascii_islower(static_cast<unsigned char>(c)); };
  bool good = !value.empty() && value.size() <= 63 && is_letter(value.front());
  char before = '.';
  for (const char c : value) {
    const bool alnum = is_letter(c) || absl::ascii_isdigit(static_cast<unsigned char>(c));
    const bool joins = (c == '-' && before != '.') || (c == '.' && before != '.' && before != '-');
    good = good && (alnum || joins);
    before = c;
  }
  if (good && before != '-' && before != '.') return absl::OkStatus();
  return Want(value, "a DNS name of at most 63 lower-case letters, digits, '-' and '.'");
}

absl::Status SetListen(Settings& settings, const std::string& value) {
  settings.metrics_listen = value;
  return CheckListen(value);
}

// What the client takes is for it to say; here only what is meant as something else.
absl::Status SetServer(Settings& settings, const std::string& value) {
  settings.api_server = value;
  const bool good =
      value.empty() || value == kNoServer ||
      (value.starts_with("https://") && value.size() > 8 && value.size() <= 512 &&
       std::ranges::all_of(value, [](unsigned char c) { return absl::ascii_isgraph(c); }));
  return good ? absl::OkStatus()
              : Want(value, "https://HOST:PORT, none, or nothing for the one of the cluster");
}

// It becomes a part of the path in each request.
absl::Status SetNodeName(Settings& settings, const std::string& value) {
  settings.api_node_name = value;
  return value.empty() || IsNodeName(value) ? absl::OkStatus()
                                            : Want(value, "a node's name as Kubernetes has it");
}

constexpr std::array<SettingRow, 25> kRows = {{
    {"device-plugin-dir", "kubelet.devicePluginDir", kDefaultDevicePluginDir,
     "the kubelet's device-plugin directory", SetPath<&Settings::device_plugin_dir>, "DIR", true},
    {"kubelet-root-dir", "kubelet.rootDir", kDefaultKubeletRootDir,
     "the kubelet's --root-dir: pod-resources/kubelet.sock below it tells which units pods have",
     SetPath<&Settings::kubelet_root_dir>, "DIR", true},
    {"registration", "kubelet.registration", "socket",
     "how to register: socket (call kubelet.sock) or registry (be found in plugins_registry)",
     SetRegistering, "socket|registry", true},
    {"iommufd", "kubelet.iommufd", "false", "hand out /dev/iommu with devices that have a cdev",
     SetFlag<&Settings::iommufd>, "true|false"},
    {"cdi-dir", "cdi.dir", "",
     "write CDI specs here, such as /var/run/cdi, for runtimes (Kata) that look for them; empty: "
     "none",
     SetPathOrNone<&Settings::cdi_dir>, "DIR"},
    {"cdi-names", "cdi.names", "false", "name CDI devices in the answers to the kubelet",
     SetFlag<&Settings::cdi_names>, "true|false"},
    {"nfd-dir", "nfd.dir", "",
     "write node labels for NFD here: .../node-feature-discovery/features.d; empty: none",
     SetPathOrNone<&Settings::nfd_dir>, "DIR"},
    {"state-dir", "stateDir", kDefaultStateDir, "the journal of what was taken, and the locks",
     SetPath<&Settings::state_dir>, "DIR", true},
    {"pci-ids", "pciIds", kDefaultPciIds, "model names", SetPath<&Settings::pci_ids>, "FILE"},
    {"resync", "resync", "60s", "read everything anew at the latest after this long",
     SetDuration<&Settings::resync>, "DURATION"},
    {"unbind-timeout", "bind.unbindTimeout", "30s",
     "give one write to the kernel this long before its group is given up",
     SetDuration<&Settings::unbind_timeout>, "DURATION"},
    {"node-timeout", "bind.nodeTimeout", "5s", "how long /dev/vfio/<group> may take to appear",
     SetDuration<&Settings::node_timeout>, "DURATION"},
    {"parallel", "bind.parallel", "8", "groups that are bound at the same time, 1 to 64",
     SetParallel, "N"},
    {"on-exit", "bind.onExit", "keep",
     "what run does with bound devices at its end: keep them bound, or release what nobody holds",
     SetOnExit, "keep|release"},
    {"log-level", "log.level", "info", "the least that is logged", SetLogLevel,
     "debug|info|warn|error"},
    {"log-format", "log.format", "text", "form of the log", SetLogFormat, "text|json"},
    {"metrics-listen", "metrics.listen", "127.0.0.1:9431",
     "serve /metrics, /healthz and /readyz over HTTP here, :PORT for all addresses; empty: nowhere",
     SetListen, "ADDRESS:PORT", true},
    {"api-server", "api.server", "",
     "the Kubernetes API server, https://HOST:PORT; empty: the pod's cluster, where there is a "
     "token; none: never",
     SetServer, "URL", true},
    {"api-token-file", "api.tokenFile", kDefaultTokenFile,
     "the token for the API server; read anew when it changes; without it the agent goes without",
     SetPath<&Settings::api_token_file>, "FILE", true},
    {"api-ca-file", "api.caFile", kDefaultCaFile, "the API server's certificate authority",
     SetPath<&Settings::api_ca_file>, "FILE", true},
    {"node-name", "api.nodeName", "",
     "this node's name in the cluster; empty: NODE_NAME of the environment, else the host's name",
     SetNodeName, "NAME", true},
    {"api-events", "api.events", "true", "tell the cluster what fails, as Events",
     SetFlag<&Settings::api_events>, "true|false"},
    {"api-condition", "api.condition", "true", "keep the Node's condition PassthroughReady",
     SetFlag<&Settings::api_condition>, "true|false"},
    {"api-labels", "api.labels", "true",
     "keep the Node's labels vfio-agent/..., where nfd.dir does not have NFD do it",
     SetFlag<&Settings::api_labels>, "true|false"},
    {"dra-driver", "dra.driverName", "vfio-agent",
     "name of the DRA driver that serves resources with `serve: dra`", SetDraDriver, "NAME", true},
}};

}  // namespace

bool IsNodeName(std::string_view name) {
  const auto alnum = [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
           absl::ascii_islower(static_cast<unsigned char>(c));
  };
  return !name.empty() && name.size() <= 253 && alnum(name.front()) && alnum(name.back()) &&
         name.find("..") == std::string_view::npos &&
         std::ranges::all_of(name, [&](char c) { return alnum(c) || c == '-' || c == '.'; });
}

std::span<const SettingRow> SettingRows() { return kRows; }

std::string VariableOfFlag(std::string_view flag) {
  std::string name = std::string(kVariable).append(flag);
  std::ranges::replace(name, '-', '_');
  return absl::AsciiStrToUpper(name);
}

std::string VariableOf(const SettingRow& row) { return VariableOfFlag(row.flag); }

std::vector<std::string> TellMisspeltVariables() {
  // Without their beginning, which they share: by that alone each would be near to the others.
  std::vector<std::string> known = {"CONFIG", "ROOT"};
  for (const SettingRow& row : kRows) known.push_back(VariableOf(row).substr(kVariable.size()));
  std::vector<std::string> sentences;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(kVariable)) continue;
    const std::string rest(name.substr(kVariable.size()));
    if (std::ranges::count(known, rest) > 0) continue;
    std::vector<std::string> meant = Suggest(rest, known);
    for (std::string& word : meant) word.insert(0, kVariable);
    if (meant.empty()) continue;
    sentences.push_back(absl::StrFormat("%s of the environment means nothing; did you mean %s?",
                                        name, EitherOf(meant)));
  }
  return sentences;
}

std::map<std::string, EffectiveSetting> ResolveSettings(const SettingSources& sources) {
  std::map<std::string, EffectiveSetting> effective;
  for (const SettingRow& row : kRows) {
    EffectiveSetting& setting = effective[row.key];
    const char* const variable =
        std::getenv(VariableOf(row).c_str());  // NOLINT(concurrency-mt-unsafe)
    if (const auto flag = sources.flags.find(row.flag); flag != sources.flags.end()) {
      setting = {flag->second, absl::StrFormat("--%s", row.flag)};
    } else if (variable != nullptr) {
      setting = {variable, VariableOf(row)};
    } else if (const auto key = sources.file.find(row.key); key != sources.file.end()) {
      setting = {key->second, sources.file_name};
    } else {
      setting = {row.fallback, "default"};
    }
  }
  return effective;
}

absl::StatusOr<Settings> MakeSettings(const SettingSources& sources) {
  Settings settings;
  const std::map<std::string, EffectiveSetting> effective = ResolveSettings(sources);
  for (const SettingRow& row : kRows) {
    const EffectiveSetting& setting = effective.at(row.key);
    if (const absl::Status status = row.set(settings, setting.value); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s (from %s): %s", row.key, setting.source, status.message()));
    }
  }
  return settings;
}

std::vector<std::string> KeepAtStart(const std::map<std::string, EffectiveSetting>& running,
                                     const std::map<std::string, EffectiveSetting>& wanted,
                                     Settings& next) {
  std::vector<std::string> kept;
  for (const SettingRow& row : kRows) {
    if (!row.at_start) continue;
    const std::string& value = running.at(row.key).value;
    if (wanted.at(row.key).value == value) continue;
    kept.emplace_back(row.key);
    row.set(next, value).IgnoreError();  // it was good enough to begin with
  }
  return kept;
}

}  // namespace vfio_agent
