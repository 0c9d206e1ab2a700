#include "agent/cluster/curl_library.h"

#include <dlfcn.h>

#include "absl/status/status.h"

namespace vfio_agent {
namespace {

template <typename Function>
bool Load(void* library, const char* name, Function& function) {
  // dlsym gives an object pointer; POSIX promises that it converts to a function pointer.
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool LoadEasy(void* library, CurlLibrary& curl) {
  return Load(library, "curl_global_init", curl.global_init) &&
         Load(library, "curl_easy_init", curl.easy_init) &&
         Load(library, "curl_easy_cleanup", curl.easy_cleanup) &&
         Load(library, "curl_easy_setopt", curl.easy_setopt) &&
         Load(library, "curl_easy_getinfo", curl.easy_getinfo) &&
         Load(library, "curl_easy_strerror", curl.easy_strerror) &&
         Load(library, "curl_slist_append", curl.slist_append) &&
         Load(library, "curl_slist_free_all", curl.slist_free_all);
}

bool LoadMulti(void* library, CurlLibrary& curl) {
  return Load(library, "curl_multi_init", curl.multi_init) &&
         Load(library, "curl_multi_cleanup", curl.multi_cleanup) &&
         Load(library, "curl_multi_add_handle", curl.multi_add_handle) &&
         Load(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
         Load(library, "curl_multi_perform", curl.multi_perform) &&
         Load(library, "curl_multi_poll", curl.multi_poll) &&
         Load(library, "curl_multi_wakeup", curl.multi_wakeup) &&
         Load(library, "curl_multi_info_read", curl.multi_info_read);
}

const CurlLibrary* Open() {
  static CurlLibrary curl;
  void* const library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_NODELETE);
  if (library == nullptr || !LoadEasy(library, curl) || !LoadMulti(library, curl)) return nullptr;
  return curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? &curl : nullptr;
}

}  // namespace

absl::StatusOr<const CurlLibrary*> LoadCurl() {
  static const CurlLibrary* const curl = Open();
  if (curl != nullptr) return curl;
  return absl::UnavailableError("libcurl.so.4 is not installed (Debian: libcurl4)");
}

}  // namespace vfio_agent
