#include <gnu/libc-version.h>
#include <zlib.h>

#include <iostream>

#include "absl/base/config.h"
#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/text/json.h"
#include "agent/usage/commit.h"
#include "agent/version.h"
#include "deviceplugin/grpc/versions.h"

namespace vfio_agent {
namespace {

#ifdef __clang__
constexpr char kCompiler[] = __VERSION__;
#else
constexpr char kCompiler[] = "g++ " __VERSION__;
#endif

// The libraries whose behaviour a bug report may hang on, as they are linked or loaded.
Json Libraries() {
  return {
      {"abseil", absl::StrFormat("%d.%d", ABSL_LTS_RELEASE_VERSION, ABSL_LTS_RELEASE_PATCH_LEVEL)},
      {"glibc", ::gnu_get_libc_version()},
      {"grpc", GrpcVersion()},
      {"nlohmann_json", absl::StrFormat("%d.%d.%d", NLOHMANN_JSON_VERSION_MAJOR,
                                        NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"protobuf", ProtobufVersion()},
      {"zlib", ::zlibVersion()}};
}

}  // namespace

int VersionCommand(const Invocation& invocation) {
  const std::string commit = CommitOf(AgentVersion());
  const Json document = {{"schema", "vfio-agent/version/v1"},
                         {"version", std::string(AgentVersion())},
                         {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
                         {"compiler", kCompiler},
                         {"libraries", Libraries()}};
  if (IsDocument(invocation.output)) {
    PrintDocument(document, invocation.output);
    return kExitDone;
  }
  std::cout << "vfio-agent " << AgentVersion() << "\n";
  if (invocation.output != Output::kWide) return kExitDone;
  if (!commit.empty()) std::cout << "commit         " << commit << "\n";
  std::cout << "compiler       " << kCompiler << "\n";
  for (const auto& [name, version] : document.at("libraries").items()) {
    std::cout << absl::StrFormat("%-14s %s\n", name, version.get<std::string>());
  }
  return kExitDone;
}

}  // namespace vfio_agent
