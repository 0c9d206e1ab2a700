#include "sysfs/host/module_loader.h"

#include <dlfcn.h>
#include <libkmod.h>

#include <cerrno>
#include <memory>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// libkmod pulls in libcrypto, which would cost the daemon a megabyte of resident memory for
// something that happens once; so it is opened only here, in the short-lived child.
struct Kmod {
  decltype(&kmod_new) make = nullptr;
  decltype(&kmod_unref) unref = nullptr;
  decltype(&kmod_module_new_from_lookup) lookup = nullptr;
  decltype(&kmod_module_probe_insert_module) insert = nullptr;
  decltype(&kmod_list_next) next = nullptr;
  decltype(&kmod_module_get_module) at = nullptr;
  decltype(&kmod_module_unref) module_unref = nullptr;
  decltype(&kmod_module_unref_list) list_unref = nullptr;
};

template <typename Function>
bool Load(void* library, const char* name, Function& function) {
  // dlsym gives an object pointer; POSIX promises that it converts to a function pointer.
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool LoadAll(void* library, Kmod& kmod) {
  return Load(library, "kmod_new", kmod.make) && Load(library, "kmod_unref", kmod.unref) &&
         Load(library, "kmod_module_new_from_lookup", kmod.lookup) &&
         Load(library, "kmod_module_probe_insert_module", kmod.insert) &&
         Load(library, "kmod_list_next", kmod.next) &&
         Load(library, "kmod_module_get_module", kmod.at) &&
         Load(library, "kmod_module_unref", kmod.module_unref) &&
         Load(library, "kmod_module_unref_list", kmod.list_unref);
}

absl::Status InsertAll(const Kmod& kmod, kmod_list* list, const std::string& module) {
  for (kmod_list* item = list; item != nullptr; item = kmod.next(list, item)) {
    kmod_module* const entry = kmod.at(item);
    const int result =
        kmod.insert(entry, KMOD_PROBE_APPLY_BLACKLIST, nullptr, nullptr, nullptr, nullptr);
    kmod.module_unref(entry);
    if (result == KMOD_PROBE_APPLY_BLACKLIST) {
      return absl::FailedPreconditionError(
          absl::StrFormat("module %s is blacklisted in modprobe.d", module));
    }
    if (result < 0) return ErrnoStatus(-result, absl::StrFormat("load module %s", module));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadKernelModule(const std::string& module) {
  const std::unique_ptr<void, int (*)(void*)> library(::dlopen("libkmod.so.2", RTLD_NOW),
                                                      ::dlclose);
  Kmod kmod;
  if (library == nullptr || !LoadAll(library.get(), kmod)) {
    return absl::NotFoundError(
        absl::StrFormat("load module %s: libkmod.so.2 is not installed", module));
  }
  const std::unique_ptr<kmod_ctx, kmod_ctx* (*)(kmod_ctx*)> context(kmod.make(nullptr, nullptr),
                                                                    kmod.unref);
  if (context == nullptr) return absl::InternalError("libkmod gave no context");
  kmod_list* list = nullptr;
  const int found = kmod.lookup(context.get(), module.c_str(), &list);
  if (found < 0) return ErrnoStatus(-found, absl::StrFormat("look up module %s", module));
  if (list == nullptr) {
    return absl::NotFoundError(
        absl::StrFormat("load module %s: not below /lib/modules for the running kernel", module));
  }
  absl::Status status = InsertAll(kmod, list, module);
  kmod.list_unref(list);
  return status;
}

}  // namespace vfio_agent
