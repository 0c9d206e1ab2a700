// JSON as it comes from the API server: untrusted, so bounded, and looked at without exceptions.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace vfio_agent {

using ApiJson = nlohmann::json;

// The most of an answer, or of one line of a watch, that is taken. etcd keeps no object over 1.5
// MB.
inline constexpr size_t kApiBytes = size_t{4} << 20;

// An object. DataLoss for anything else, for broken JSON, and for what is nested deeper, or
// has more values, than any object of Kubernetes'.
absl::StatusOr<ApiJson> ParseApiJson(std::string_view text);

// What stands at `path`; nullptr where there is nothing.
const ApiJson* At(const ApiJson& json, std::initializer_list<const char*> path);
// The text there; "" where there is none, or something else.
std::string TextAt(const ApiJson& json, std::initializer_list<const char*> path);
// The number there; 0 likewise.
int NumberAt(const ApiJson& json, std::initializer_list<const char*> path);

// On one line. What is not UTF-8 in it is replaced.
std::string DumpApiJson(const ApiJson& json);

// The start of `text`, not longer than `limit` bytes, and not cut within a character.
std::string CutText(std::string_view text, size_t limit);

// True for what can be the name of an object and part of a path: a DNS subdomain.
bool IsObjectName(std::string_view name);

}  // namespace vfio_agent
