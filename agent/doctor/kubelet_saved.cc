#include "agent/doctor/kubelet_saved.h"

#include <array>

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
      words.emplace_back(word);
    }
  }
}

std::vector<std::string> ConfFiles(const Tree& files, const std::string& dir) {
  std::vector<std::string> paths;
  const absl::StatusOr<std::vector<std::string>> names = files.List(dir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (name.ends_with(".conf")) paths.push_back(absl::StrFormat("%s/%s", dir, name));
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
  ASSIGN_OR_RETURN(const std::string text, ReadProcText(files, path, kFileLimit));
  return ReadKubeletConfig(text, "/" + path, config);
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
    }
  }
}

}  // namespace vfio_agent
