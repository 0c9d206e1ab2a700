#include "deviceplugin/grpc/versions.h"

#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>

namespace vfio_agent {

std::string GrpcVersion() { return grpc::Version(); }

std::string ProtobufVersion() {
  return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
}

}  // namespace vfio_agent
