// Descriptors: what server reflection tells: which file of the served .proto files has which
// symbol.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proto/reflection.pb.h"

namespace vfio_agent {

// The compiled files of what the status socket serves: a google.protobuf.FileDescriptorSet, put
// into the program when it is built.
std::string_view ServedFiles();

class Descriptors {
 public:
  // `file_set`: as ServedFiles() has it. One that cannot be read gives no files.
  explicit Descriptors(std::string_view file_set);

  // The services' full names, sorted.
  const std::vector<std::string>& services() const { return services_; }

  grpc::reflection::v1alpha::ServerReflectionResponse Answer(
      const grpc::reflection::v1alpha::ServerReflectionRequest& request) const;

 private:
  std::map<std::string, std::string> files_;  // FileDescriptorProto by its name
  std::map<std::string, std::string> names_;  // of the file, by symbol
  std::vector<std::string> services_;
};

}  // namespace vfio_agent
