// fakepci: gives stock QEMU devices with NVIDIA's ids, so that a guest has an H100 to hand out and
// Teslas T4 to cut up.
//
// Preloaded into qemu-system-x86_64, it registers QEMU object types that derive from existing
// devices and differ in their PCI ids alone. QEMU's headers are not needed: the four fields lie
// together in the class structure that a type inherits from its parent, in this order, and are
// found there by the parent's known values.
// Source: QEMU 7.2, include/qom/object.h (TypeInfo), include/hw/pci/pci.h (PCIDeviceClass).

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace {

struct Ids {
  uint16_t vendor;
  uint16_t device;
  uint8_t revision;
  uint16_t class_code;  // base and sub class: 0x0302
};
// The layout inside PCIDeviceClass: the byte after the revision is padding.
static_assert(offsetof(Ids, revision) == 4 && offsetof(Ids, class_code) == 6);

struct FakeDevice {
  const char* name;
  const char* parent;
  Ids from;
  Ids to;
};

constexpr FakeDevice kDevices[] = {
    {"fake-h100", "e1000e", {0x8086, 0x10d3, 0, 0x0200}, {0x10de, 0x2330, 0xa1, 0x0302}},
    {"fake-h100-audio", "intel-hda", {0x8086, 0x2668, 0, 0x0403}, {0x10de, 0x22ba, 0xa1, 0x0403}},
    // Not of class 0302, which the default policy would give away whole.
    {"fake-t4", "edu", {0x1234, 0x11e8, 0, 0x00ff}, {0x10de, 0x1eb8, 0xa1, 0x1200}},
};

// QEMU's struct of the same name, field by field.
struct TypeInfo {
  const char* name;
  const char* parent;
  size_t instance_size;
  size_t instance_align;
  void (*instance_init)(void*);
  void (*instance_post_init)(void*);
  void (*instance_finalize)(void*);
  bool is_abstract;
  size_t class_size;
  void (*class_init)(void*, void*);
  void (*class_base_init)(void*, void*);
  void* class_data;
  void* interfaces;
};

// PCIDeviceClass and its parents take some 300 bytes in QEMU 7.2; the ids come before the end.
constexpr size_t kClassSearchBytes = 512;

bool SameDevice(const Ids& a, const Ids& b) {
  return a.vendor == b.vendor && a.device == b.device && a.class_code == b.class_code;
}

void InitClass(void* object_class, void* class_data) {
  const auto& fake = *static_cast<const FakeDevice*>(class_data);
  char* const bytes = static_cast<char*>(object_class);
  for (size_t at = 0; at + sizeof(Ids) <= kClassSearchBytes; at += alignof(Ids)) {
    Ids ids;
    std::memcpy(&ids, bytes + at, sizeof ids);
    if (!SameDevice(ids, fake.from)) continue;
    std::memcpy(bytes + at, &fake.to, sizeof fake.to);
    return;
  }
  std::fprintf(stderr, "fakepci: the ids of %s are not in its class: another QEMU?\n", fake.parent);
  std::abort();
}

void RegisterTypes() {
  // QEMU exports its symbols to its modules; the library finds them the same way.
  using Register = void* (*)(const TypeInfo*);
  const auto type_register =
      reinterpret_cast<Register>(::dlsym(RTLD_DEFAULT, "type_register_static"));
  if (type_register == nullptr) {
    std::fprintf(stderr, "fakepci: preloaded into a program that is not QEMU\n");
    std::abort();
  }
  static TypeInfo types[std::size(kDevices)];
  for (size_t i = 0; i < std::size(kDevices); ++i) {
    types[i] = {.name = kDevices[i].name,
                .parent = kDevices[i].parent,
                .class_init = InitClass,
                .class_data = const_cast<FakeDevice*>(&kDevices[i])};
    type_register(&types[i]);
  }
}

using Main = int (*)(int, char**, char**);
Main qemu_main = nullptr;

int RegisterThenMain(int argc, char** argv, char** envp) {
  RegisterTypes();
  return qemu_main(argc, argv, envp);
}

}  // namespace

// A constructor of this library would run before GLib's own, which registering needs: the types
// are registered at the start of main() instead. Name and parameters are the C library's.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-function-size)
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*rtld_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto real_start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  qemu_main = main;
  return real_start(RegisterThenMain, argc, argv, init, fini, rtld_fini, stack_end);
}
