// What is said of vGPUs that are missing, too many, or somebody else's.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/vgpu/vgpu_slots.h"

namespace vfio_agent {
namespace {

std::string SpellType(const VgpuNames& names, int type) {
  const auto name = names.find(type);
  return name == names.end() ? absl::StrFormat("%d", type)
                             : absl::StrFormat("%s (%d)", name->second, type);
}

std::string CurrentPath(const PciAddress& function) {
  return absl::StrFormat("/sys/bus/pci/devices/%s/nvidia/current_vgpu_type", function.ToString());
}

std::string Release(const PciAddress& function) {
  return absl::StrFormat("vfio-agent release %s, once no guest has it", function.ToString());
}

constexpr char kWait[] = "nothing to do: they are planned again after that";

// What keeps others from a card, as far as it goes by vGPUs that it has.
struct Load {
  std::string text;  // "2 of NVIDIA L40S-1B (1145), 1 of them set by others; … is in use by …"
  const VgpuFunction* foreign = nullptr;  // one that others have set
};

Load LoadOf(const Context& context, const VgpuSlot& slot, const VgpuNames& names) {
  Load load;
  std::map<int, std::pair<int, int>> types;  // how many, and how many of them are others'
  for (const VgpuFunction* function : slot.functions) {
    const auto type = VgpuTypeOf(*function, context.custody.records);
    if (!type || *type == 0) continue;
    const bool ours = IsOwnVgpu(*function, context.custody.records);
    ++types[*type].first;
    types[*type].second += ours ? 0 : 1;
    if (!ours && load.foreign == nullptr) load.foreign = function;
  }
  std::vector<std::string> parts;
  for (const auto& [type, count] : types) {
    parts.push_back(absl::StrFormat("%d of %s", count.first, SpellType(names, type)));
    if (count.second > 0) parts.back() += absl::StrFormat(" (%d set by others)", count.second);
  }
  load.text = absl::StrJoin(parts, ", ");
  for (const auto& [address, users] : slot.staying) {
    load.text += absl::StrFormat("; %s is in use by %s", address.ToString(), users);
  }
  return load;
}

// What to do about it.
std::string LightenWords(const VgpuSlot& slot, const Load& load) {
  if (!slot.staying.empty()) {
    return "stop those guests: the types that this agent has set are taken away then, by itself";
  }
  if (load.foreign != nullptr) {
    return absl::StrFormat("take away what others have set and no guest has: echo 0 > %s",
                           CurrentPath(load.foreign->address));
  }
  return "lower the counts of other types in vgpu[].types: what is too many is taken away";
}

bool IsGoing(const std::vector<VgpuSlot>& slots) {
  return std::ranges::any_of(slots, [](const VgpuSlot& slot) { return !slot.going.empty(); });
}

// The first card that has vGPUs.
const VgpuSlot& Loaded(const std::vector<VgpuSlot>& slots, const Context& context) {
  const auto found = std::ranges::find_if(slots, [&context](const VgpuSlot& slot) {
    return std::ranges::any_of(slot.functions, [&context](const VgpuFunction* function) {
      return VgpuTypeOf(*function, context.custody.records).value_or(0) != 0;
    });
  });
  return found == slots.end() ? slots.front() : *found;
}

std::string NotNamed(const VgpuNames& names, int type) {
  return names.contains(type) ? "" : ", nor is its name known";
}

}  // namespace

UnknownVgpu UnknownVgpuType(const Context& context, const std::string& wanted,
                            const std::vector<VgpuSlot>& slots, const VgpuNames& names) {
  const VgpuSlot& slot = Loaded(slots, context);
  UnknownVgpu unknown{.physical = slot.physical, .waits = IsGoing(slots)};
  const std::string card = slot.physical->address.ToString();
  if (unknown.waits) {
    unknown.why = {.code = Code::kProbeRefused,
                   .text = absl::StrFormat("vGPUs of the type '%s' wait until others have been "
                                           "taken away: only then is it listed, or is not",
                                           wanted),
                   .remedy = kWait};
    return unknown;
  }
  std::set<std::string> listed;
  for (const VgpuFunction* function : slot.functions) {
    for (const VgpuType& type : function->creatable) listed.insert(type.name);
  }
  const std::string room = listed.empty() ? "nothing" : absl::StrJoin(listed, ", ");
  const Load load = LoadOf(context, slot, names);
  const bool full = listed.empty() && !load.text.empty();
  unknown.why.code = !slot.staying.empty() ? Code::kHeld
                     : full                ? Code::kProbeRefused
                                           : Code::kVfioDriverMissing;
  unknown.why.text =
      absl::StrFormat("no virtual function can be given the vGPU type '%s'; %s has room for: %s",
                      wanted, card, room);
  if (!load.text.empty()) unknown.why.text += absl::StrFormat("; it has %s", load.text);
  unknown.why.remedy =
      full || !slot.staying.empty()
          ? LightenWords(slot, load) +
                "; a full card lists no types: if it has this one, give its name in vgpu[].names"
          : "write a name or number of nvidia/creatable_vgpu_types in vgpu[].types; of one "
            "that the driver lists no more, since the card is full, give the name in "
            "vgpu[].names";
  return unknown;
}

Refusal ShortageOf(const Context& context, const VgpuPlace& place, const VgpuNames& names,
                   int missing) {
  const VgpuSlot& slot = *place.slot;
  const std::string card = place.Address().ToString(), type = SpellType(names, place.type);
  const std::optional<int> before = slot.giving;
  if (before.value_or(place.type) != place.type) {
    return {.code = Code::kProbeRefused,
            .text = absl::StrFormat(
                "%d more of the vGPU type %s wait until %s has those of the type %s, which leave "
                "room for them or do not",
                missing, type, card, SpellType(names, *before)),
            .remedy = kWait};
  }
  if (!slot.going.empty()) {
    return {.code = Code::kProbeRefused,
            .text = absl::StrFormat("%d more of the vGPU type %s wait until %d others have been "
                                    "taken away from %s",
                                    missing, type, slot.going.size(), card),
            .remedy = kWait};
  }
  Refusal shortage{
      .code = slot.staying.empty() ? Code::kProbeRefused : Code::kHeld,
      .text = absl::StrFormat(
          "%d more of the vGPU type %s are wanted than %s has virtual functions or memory for",
          missing, type, card),
      .remedy =
          "lower the count in vgpu[].types, or take other types away: a card has room "
          "for what nvidia/creatable_vgpu_types of its free functions lists"};
  const Load load = LoadOf(context, slot, names);
  if (!load.text.empty()) shortage.text += absl::StrFormat("; it has %s", load.text);
  if (!slot.staying.empty() || load.foreign != nullptr) {
    shortage.remedy = LightenWords(slot, load) + "; or lower the count in vgpu[].types";
  }
  return shortage;
}

Refusal StaysInUse(const PciAddress& function, int type, const VgpuNames& names,
                   const std::string& users) {
  return {
      .code = Code::kHeld,
      .text = absl::StrFormat("%s has the vGPU type %s, more than vgpu[].types asks for, and "
                              "is in use by %s: it goes after that, and is given to nobody else",
                              function.ToString(), SpellType(names, type), users),
      .remedy = "stop the guest, and the type is taken away by itself; or raise the count"};
}

Refusal NotOffered(const Context& context, const VgpuFunction& function, const VgpuNames& names) {
  const std::optional<int> type = VgpuTypeOf(function, context.custody.records);
  if (!type) {
    return {.code = Code::kDriverChanged,
            .text = absl::StrFormat("the vGPU type of %s cannot be read: it is not offered, and "
                                    "not written to",
                                    function.address.ToString()),
            .remedy = absl::StrFormat("cat %s; dmesg | tail", CurrentPath(function.address))};
  }
  const bool ours = IsOwnVgpu(function, context.custody.records);
  return {.code = Code::kExcluded,
          .text = absl::StrFormat("%s has the vGPU type %s, which vgpu[].types does not name%s: it "
                                  "is offered to nobody",
                                  function.address.ToString(), SpellType(names, *type),
                                  NotNamed(names, *type)),
          .remedy = ours ? Release(function.address)
                         : absl::StrFormat("name it in vgpu[].types (a count of 0 offers what is "
                                           "there) and in vgpu[].names; or echo 0 > %s",
                                           CurrentPath(function.address))};
}

Refusal LeftBehind(const VgpuFunction& function, const VgpuNames& names) {
  return {.code = Code::kExcluded,
          .text = absl::StrFormat("%s has the vGPU type %s, which this agent has set, and no "
                                  "vgpu[].parent selects its card any more: it keeps the type "
                                  "until it is released, and is offered to nobody",
                                  function.address.ToString(),
                                  SpellType(names, function.current.value_or(0))),
          .remedy = Release(function.address)};
}

}  // namespace vfio_agent
