// FakeKubelet::Plugin: what the fake kubelet holds of each plugin that has registered.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>
#include <thread>

#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {

// One plugin that has registered: its connection and the thread that reads its list.
struct FakeKubelet::Plugin {
  std::string resource;
  std::string endpoint;
  bool watched = false;  // registered in full: the newest such plugin is asked
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<v1beta1::DevicePlugin::Stub> stub;
  v1beta1::DevicePluginOptions options;
  grpc::ClientContext list_context;
  bool told = false;      // a list has come
  std::string last_list;  // that one, serialized
  std::thread reader;
};

}  // namespace vfio_agent
