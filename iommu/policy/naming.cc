#include "iommu/policy/naming.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr size_t kMaxNamePart = 63;  // behind the '/', as the kubelet has it

bool Alnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }
bool Space(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

bool ParseId(std::string_view text, uint16_t& id) {
  return text.size() >= 4 &&
         std::from_chars(text.data(), text.data() + 4, id, 16).ptr == text.data() + 4;
}

std::string Trim(std::string_view text) {
  while (!text.empty() && Space(text.front())) text.remove_prefix(1);
  while (!text.empty() && Space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// A name is shown on terminals: what could steer one becomes '?'. The resource name is the same.
std::string WithoutControls(std::string name) {
  for (char& c : name) {
    if (Space(c)) c = ' ';
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return name;
}

// Cuts both ends down to what the kubelet lets a name begin and end with.
std::string TrimToAlnum(std::string name) {
  while (!name.empty() && !Alnum(name.back())) name.pop_back();
  const auto first = std::ranges::find_if(name, Alnum);
  name.erase(name.begin(), first);
  return name;
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  bool at_start = true;
  char last = '.';
  for (const char c : text) {
    const bool lower_alnum = Alnum(c) && !absl::ascii_isupper(static_cast<unsigned char>(c));
    if (!lower_alnum && c != '-' && c != '.') return false;
    if (at_start && !lower_alnum) return false;
    if (c == '.' && last == '-') return false;
    at_start = c == '.';
    last = c;
  }
  return Alnum(text.back());
}

bool IsNamePart(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNamePart && Alnum(text.front()) &&
         Alnum(text.back()) && std::ranges::all_of(text, [](char c) {
           return Alnum(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

ModelNames ParseModelNames(std::istream& text, const std::set<DeviceId>& ids) {
  ModelNames names;
  uint16_t vendor = 0;
  bool in_vendor = false;
  std::string line;
  while (names.size() < ids.size() && std::getline(text, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != '\t') {
      in_vendor = ParseId(line, vendor) && std::ranges::any_of(ids, [vendor](const DeviceId& id) {
                    return id.first == vendor;
                  });
    } else if (in_vendor && line.size() > 5 && line[1] != '\t') {
      uint16_t device = 0;
      const std::string_view rest(line);
      if (!ParseId(rest.substr(1), device) || !ids.contains({vendor, device})) continue;
      names.emplace(DeviceId{vendor, device}, WithoutControls(Trim(rest.substr(5))));
    }
  }
  return names;
}

absl::StatusOr<ModelNames> ReadModelNames(const std::string& path, const std::set<DeviceId>& ids) {
  struct stat status = {};
  const bool regular = ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  std::ifstream file(regular ? path : "");
  if (!file) return absl::NotFoundError(absl::StrFormat("cannot open %s", path));
  return ParseModelNames(file, ids);
}

ModelNames OwnModels() {
  constexpr uint16_t kNvidia = 0x10de, kAmd = 0x1002;
  return {
      {{kAmd, 0x74a0}, "Aqua Vanjaram [Instinct MI300A]"},
      {{kAmd, 0x74a1}, "Aqua Vanjaram [Instinct MI300X]"},
      {{kAmd, 0x74a5}, "Aqua Vanjaram [Instinct MI325X]"},
      {{kNvidia, 0x22a3}, "GH100 [H100 NVSwitch]"},
      {{kNvidia, 0x2321}, "GH100 [H100L 94GB]"},
      {{kNvidia, 0x2322}, "GH100 [H800 PCIe]"},
      {{kNvidia, 0x2324}, "GH100 [H800]"},
      {{kNvidia, 0x2329}, "GH100 [H20]"},
      {{kNvidia, 0x2330}, "GH100 [H100 SXM5 80GB]"},
      {{kNvidia, 0x2335}, "GH100 [H200 SXM 141GB]"},
      {{kNvidia, 0x233b}, "GH100 [H200 NVL]"},
      {{kNvidia, 0x2342}, "GH100 [GH200 120GB / 480GB]"},
      {{kNvidia, 0x26b7}, "AD102GL [L20]"},
      {{kNvidia, 0x26b9}, "AD102GL [L40S]"},
      {{kNvidia, 0x26ba}, "AD102GL [L20]"},
      {{kNvidia, 0x2901}, "GB100 [B200]"},
      {{kNvidia, 0x2941}, "GB100 [HGX GB200]"},
      {{kNvidia, 0x29bc}, "GB102 [B100]"},
      {{kNvidia, 0x2b85}, "GB202 [GeForce RTX 5090]"},
      {{kNvidia, 0x2bb5}, "GB202GL [RTX PRO 6000 Blackwell Server Edition]"},
      {{kNvidia, 0x3182}, "GB110 [B300 SXM6]"},
      {{kNvidia, 0x31c2}, "GB110 [GB300]"},
      {{kNvidia, 0x31c3}, "GB110 [GB300]"},
  };
}

ModelNames FindModelNames(const std::string& path, const std::set<DeviceId>& ids,
                          absl::Status& error) {
  ModelNames names = OwnModels();
  std::set<DeviceId> wanted;
  for (const DeviceId& id : ids) {
    if (!names.contains(id)) wanted.insert(id);
  }
  if (wanted.empty()) return names;
  absl::StatusOr<ModelNames> read = ReadModelNames(path, wanted);
  error = read.status();
  if (read.ok()) names.merge(*read);
  return names;
}

std::string ModelResourceName(std::string_view model) {
  std::string name;
  bool in_space = false;
  for (const char c : model) {
    if (Space(c)) {
      if (!in_space) name += '_';
      in_space = true;
      continue;
    }
    in_space = false;
    if (c == '/' || c == '.') {
      name += '_';
    } else if (Alnum(c) || c == '_') {
      name += absl::ascii_toupper(static_cast<unsigned char>(c));
    }
  }
  name = TrimToAlnum(std::move(name));
  if (name.size() > kMaxNamePart) name = TrimToAlnum(name.substr(0, kMaxNamePart));
  return name;
}

std::string ResourceName(const ResourceRule& rule, const PciDevice& device, const Policy& policy,
                         const ModelNames& names) {
  if (!rule.name.empty()) return rule.name;
  const std::string id = absl::StrFormat("%04x:%04x", device.vendor, device.device);
  std::string model;
  if (const auto alias = policy.aliases.find(id); alias != policy.aliases.end()) {
    model = alias->second;
  } else if (const auto known = names.find({device.vendor, device.device}); known != names.end()) {
    model = ModelResourceName(known->second);
  }
  if (model.empty()) model = absl::StrFormat("%04x", device.device);
  if (model.size() + rule.suffix.size() > kMaxNamePart && rule.suffix.size() < kMaxNamePart) {
    model = TrimToAlnum(model.substr(0, kMaxNamePart - rule.suffix.size()));
  }
  return absl::StrFormat("%s/%s%s", rule.domain, model, rule.suffix);
}

absl::Status CheckResourceName(std::string_view name) {
  const size_t slash = name.find('/');
  const auto refuse = [name](const char* why) {
    return absl::InvalidArgumentError(absl::StrFormat("resource name '%s': %s", name, why));
  };
  if (slash == std::string_view::npos) return refuse("has no domain (want nvidia.com/NAME)");
  const std::string_view domain = name.substr(0, slash);
  if (name.find("kubernetes.io/") != std::string_view::npos) {
    return refuse("kubernetes.io is reserved");
  }
  if (name.starts_with("requests.")) return refuse("must not begin with 'requests.'");
  // The kubelet puts "requests." in front and checks the result.
  if (!IsDnsSubdomain(domain) || domain.size() > 253 - 9) {
    return refuse("the domain is no lower-case DNS name of at most 244 characters");
  }
  if (!IsNamePart(name.substr(slash + 1))) {
    return refuse(
        "the part after '/' must be 1 to 63 of A-Z a-z 0-9 - _ . and begin and end with a letter "
        "or digit");
  }
  return absl::OkStatus();
}

std::string ResourceVariable(std::string_view resource) {
  std::string name = "PCI_RESOURCE_";
  for (const char c : resource) {
    name += c == '/' || c == '.' ? '_' : absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  return name;
}

}  // namespace vfio_agent
