#include "agent/doctor/kubelet_saved.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kFileLimit = size_t{256} * 1024;

constexpr std::array kUnits = std::to_array<std::string_view>(
    {"usr/lib/systemd/system/kubelet.service", "lib/systemd/system/kubelet.service",
     "etc/systemd/system/kubelet.service"});
constexpr char kWanted[] = "etc/systemd/system/multi-user.target.wants/kubelet.service";

// In the order in which kubeadm's unit puts them; the last one wins.
constexpr std::array kEnvironmentFiles = std::to_array<std::string_view>(
    {"var/lib/kubelet/kubeadm-flags.env", "etc/default/kubelet", "etc/sysconfig/kubelet"});

// kubeadm, EKS, older EKS, OpenShift, GKE.
constexpr std::array kConfigFiles = std::to_array<std::string_view>(
    {"var/lib/kubelet/config.yaml", "etc/kubernetes/kubelet/config.json",
     "etc/kubernetes/kubelet/kubelet-config.json", "etc/kubernetes/kubelet.conf",
     "home/kubernetes/kubelet-config.yaml"});

// Of k3s and RKE2: unit, environment, configuration.
constexpr std::array kRancherUnits = std::to_array<std::string_view>(
    {"usr/lib/systemd/system/rke2-server.service", "usr/lib/systemd/system/rke2-agent.service",
     "usr/local/lib/systemd/system/rke2-server.service",
     "usr/local/lib/systemd/system/rke2-agent.service", "etc/systemd/system/rke2-server.service",
     "etc/systemd/system/rke2-agent.service", "etc/systemd/system/k3s.service",
     "etc/systemd/system/k3s-agent.service"});
constexpr std::array kRancherFiles = std::to_array<std::string_view>(
    {"etc/rancher/rke2/config.yaml", "etc/rancher/k3s/config.yaml"});

std::string Below(const std::string& path) {
  return path.substr(std::min(path.find_first_not_of('/'), path.size()));
}

// The words of a unit or environment file: KUBELET_EXTRA_ARGS="--a=b --c" has two.
void AddWords(const Tree& files, const std::string& path, std::vector<std::string>& words) {
  const absl::StatusOr<std::string> text = ReadProcText(files, path, kFileLimit);
  if (!text.ok()) return;
  for (const std::string_view line : Lines(*text)) {
    if (line.starts_with('#')) continue;
    std::string plain(line);
    for (char& c : plain) {
      if (c == '"' || c == '\'') c = ' ';
    }
    for (std::string_view word : Fields(plain)) {
      const size_t flag = word.find("=--");
      if (!word.starts_with('-') && flag != std::string_view::npos) word.remove_prefix(flag + 1);
      if (word != "\\") words.emplace_back(word);  // the line goes on
    }
  }
}

std::vector<std::string> ConfFiles(const Tree& files, const std::string& dir,
                                   std::string_view ending = ".conf") {
  std::vector<std::string> paths;
  const absl::StatusOr<std::vector<std::string>> names = files.List(dir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (name.ends_with(ending)) paths.push_back(absl::StrFormat("%s/%s", dir, name));
  }
  return paths;
}

std::string FindConfigFile(const Tree& files, const KubeletFlags& flags) {
  const auto named = flags.find("config");
  if (named != flags.end() && named->second.starts_with('/')) return Below(named->second);
  for (const std::string_view path : kConfigFiles) {
    if (files.Exists(path)) return std::string(path);
  }
  return "";
}

absl::Status ReadInto(const Tree& files, const std::string& path, KubeletConfig& config) {
  const absl::StatusOr<std::string> text = ReadProcText(files, path, kFileLimit);
  if (text.ok()) return ReadKubeletConfig(*text, "/" + path, config);
  const int error = ErrnoOf(text.status());
  return error != 0 ? ErrnoStatus(error, "/" + path) : Annotate(text.status(), "/" + path);
}

}  // namespace

KubeletFlags ReadSavedFlags(const Tree& files) {
  std::vector<std::string> words;
  for (const std::string_view unit : kUnits) AddWords(files, std::string(unit), words);
  for (const std::string_view unit : kUnits) {
    for (const std::string& path : ConfFiles(files, absl::StrFormat("%s.d", unit))) {
      AddWords(files, path, words);
    }
  }
  for (const std::string_view path : kEnvironmentFiles) AddWords(files, std::string(path), words);
  return ParseKubeletFlags(words);
}

KubeletFlags ReadRancherFlags(const Tree& files) {
  std::vector<std::string> words;
  for (const std::string_view unit : kRancherUnits) {
    AddWords(files, std::string(unit), words);
    AddWords(files, absl::StrFormat("%s.env", unit), words);
    for (const std::string& path : ConfFiles(files, absl::StrFormat("%s.d", unit))) {
      AddWords(files, path, words);
    }
  }
  KubeletFlags flags = ParseKubeletArgs(words);
  for (const std::string_view file : kRancherFiles) {
    std::vector<std::string> paths = ConfFiles(files, absl::StrFormat("%s.d", file), ".yaml");
    paths.insert(paths.begin(), std::string(file));
    KubeletFlags here;  // later files win, and what is on the command line over all of them
    for (const std::string& path : paths) {
      const absl::StatusOr<std::string> text = ReadProcText(files, path, kFileLimit);
      if (!text.ok()) continue;
      for (auto& [name, value] : ReadKubeletArgs(*text, path)) here[name] = value;
    }
    flags.merge(here);
  }
  return flags;
}

bool HasRancherUnit(const Tree& files) {
  const auto there = [&](std::string_view unit) { return files.Exists(unit); };
  return std::ranges::any_of(kRancherUnits, there);
}

void ReadUnit(const Tree& files, KubeletFacts& facts) {
  for (const std::string_view unit : kUnits) {
    const absl::StatusOr<std::string> link = files.ReadLink(unit);
    if (link.ok() && link->ends_with("/dev/null")) {
      facts.unit_masked = true;
    } else if (link.ok() || files.Exists(unit)) {
      facts.unit_installed = true;
    }
  }
  facts.unit_enabled = files.ReadLink(kWanted).ok();
}

void ReadConfigFiles(const Tree& files, const KubeletFlags& flags, KubeletFacts& facts) {
  std::vector<std::string> paths;
  if (const std::string main = FindConfigFile(files, flags); !main.empty()) {
    facts.config_file = "/" + Printable(main, 256);
    paths.push_back(main);
  }
  if (const auto dir = flags.find("config-dir"); dir != flags.end()) {
    for (std::string& path : ConfFiles(files, Below(dir->second))) paths.push_back(std::move(path));
  }
  for (const std::string& path : paths) {
    const absl::Status status = ReadInto(files, path, facts.config);
    if (!status.ok() && facts.config_error.empty()) {
      facts.config_error = Printable(Message(status), 256);
      facts.config_missing =
          ErrnoOf(status) == ENOENT && path == paths.front() && !facts.config_file.empty();
    }
  }
}

}  // namespace vfio_agent
