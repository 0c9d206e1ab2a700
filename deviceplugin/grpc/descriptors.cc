#include "deviceplugin/grpc/descriptors.h"

#include <grpcpp/support/status_code_enum.h>

#include <algorithm>

#include "proto/outline.pb.h"

namespace vfio_agent {
namespace {

namespace reflection = grpc::reflection::v1alpha;

using Symbols = std::vector<std::string>;

std::string Join(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : scope + "." + name;
}

void AddService(const std::string& scope, const outline::List& service, Symbols& symbols) {
  const std::string full_name = Join(scope, service.name());
  symbols.push_back(full_name);
  for (const outline::Named& method : service.member()) {
    symbols.push_back(Join(full_name, method.name()));
  }
}

// As in C++, an enum's values stand beside it and not in it.
void AddEnum(const std::string& scope, const outline::List& list, Symbols& symbols) {
  symbols.push_back(Join(scope, list.name()));
  for (const outline::Named& value : list.member()) symbols.push_back(Join(scope, value.name()));
}

void AddMessage(const std::string& scope, const outline::Message& message, Symbols& symbols) {
  const std::string full_name = Join(scope, message.name());
  symbols.push_back(full_name);
  for (const outline::Named& field : message.field()) {
    symbols.push_back(Join(full_name, field.name()));
  }
  for (const outline::List& list : message.enum_type()) {
    AddEnum(full_name, list, symbols);
  }
  for (const outline::Message& nested : message.nested_type()) {
    AddMessage(full_name, nested, symbols);
  }
}

void Refuse(grpc::StatusCode code, const std::string& text,
            reflection::ServerReflectionResponse& answer) {
  answer.mutable_error_response()->set_error_code(code);
  answer.mutable_error_response()->set_error_message(text);
}

}  // namespace

Descriptors::Descriptors(std::string_view file_set) {
  outline::FileSet set;
  if (!set.ParseFromArray(file_set.data(), static_cast<int>(file_set.size()))) return;
  for (const std::string& bytes : set.file()) {
    outline::File file;
    if (!file.ParseFromString(bytes)) continue;
    Symbols symbols;
    for (const outline::Message& message : file.message_type()) {
      AddMessage(file.package(), message, symbols);
    }
    for (const outline::List& list : file.enum_type()) {
      AddEnum(file.package(), list, symbols);
    }
    for (const outline::List& service : file.service()) {
      services_.push_back(Join(file.package(), service.name()));
      AddService(file.package(), service, symbols);
    }
    for (const std::string& symbol : symbols) names_[symbol] = file.name();
    files_[file.name()] = bytes;
  }
  std::ranges::sort(services_);
}

reflection::ServerReflectionResponse Descriptors::Answer(
    const reflection::ServerReflectionRequest& request) const {
  using Request = reflection::ServerReflectionRequest;
  reflection::ServerReflectionResponse answer;
  answer.set_valid_host(request.host());
  *answer.mutable_original_request() = request;
  const auto add_file = [&](const std::string& name) {
    const auto file = files_.find(name);
    if (file == files_.end()) return Refuse(grpc::StatusCode::NOT_FOUND, "no such file", answer);
    answer.mutable_file_descriptor_response()->add_file_descriptor_proto(file->second);
  };
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      add_file(request.file_by_filename());
      break;
    case Request::kFileContainingSymbol: {
      const auto symbol = names_.find(request.file_containing_symbol());
      add_file(symbol == names_.end() ? "" : symbol->second);
      break;
    }
    case Request::kListServices:
      for (const std::string& service : services_) {
        answer.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case Request::kFileContainingExtension:
    case Request::kAllExtensionNumbersOfType:
      Refuse(grpc::StatusCode::NOT_FOUND, "no message has extensions", answer);
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      Refuse(grpc::StatusCode::INVALID_ARGUMENT, "nothing was asked", answer);
      break;
  }
  return answer;
}

}  // namespace vfio_agent
