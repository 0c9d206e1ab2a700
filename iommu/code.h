// Code: the closed list of refusal, warning and health codes, each with what to do about it.
#pragma once

#include <optional>
#include <string_view>

namespace vfio_agent {

enum class Code {
  kIommuOff,
  kNoIommuGroup,
  kNoiommu,
  kForeignMember,
  kInUseNetwork,
  kInUseStorage,
  kInUseDisplay,
  kInUseHolder,
  kBootDisplay,
  kPfHasVfs,
  kVfNeedsOptIn,
  kVfioDriverMissing,
  kProbeRefused,
  kUnbindTimeout,
  kUnbindStuck,
  kOverrideUnsupported,
  kPermissionDenied,
  kRmrrDirect,
  kConfigUnreadable,
  kPowerD3cold,
  kNoReset,
  kSharedBusReset,
  kAcsOverride,
  kGroupChanged,
  kDriverChanged,
  kNodeMissing,
  kGroupSplit,
  kHeld,
  kExcluded,
  kAddressTooWide,
  kNameCollision,
  kNameInvalid,
  kDeviceGone,
  kAerFatal,
  kForeignManager,
};

// The spelling that logs, JSON and the operator's guide use: "foreign-member".
std::string_view CodeName(Code code);

// The code with which `text`, or a part of it after another "…: ", begins: "group-split: …".
// nullopt for none.
std::optional<Code> FindCode(std::string_view text);

// True for codes that hinder nothing: no-reset, shared-bus-reset, acs-override.
bool IsWarning(Code code);

// True for the in-use-* codes and boot-display, which `guard.override` may overrule.
bool IsGuard(Code code);

// What an operator does next, for any device: one or two sentences.
std::string_view DefaultRemedy(Code code);

}  // namespace vfio_agent
