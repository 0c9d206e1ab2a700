// The faults of the fake kubelet, and the pods that it tells of.
#include <utility>

#include "test/kubelet/fake_kubelet.h"
#include "test/kubelet/fake_plugin.h"
#include "test/kubelet/fake_pods.h"

namespace vfio_agent {

void FakeKubelet::IgnoreLists(bool ignore) {
  const std::unique_lock lock(mutex_);
  ignore_lists_ = ignore;
}

void FakeKubelet::RefuseRegister(std::string text) {
  const std::unique_lock lock(mutex_);
  refuse_register_ = std::move(text);
}

void FakeKubelet::HidePods(bool hidden) { pods_->Hide(hidden); }

int FakeKubelet::PodLists() const { return pods_->lists(); }

void FakeKubelet::SilencePodResources(bool silent) { pods_->Silence(silent); }

void FakeKubelet::RefusePodResources(std::string text) { pods_->Refuse(std::move(text)); }

void FakeKubelet::SetPod(const std::string& pod_namespace, const std::string& pod,
                         const std::string& container, const std::string& resource,
                         std::vector<std::string> ids) {
  pods_->Set(pod_namespace, pod, container, resource, std::move(ids));
}

bool FakeKubelet::RemovePod(const std::string& pod_namespace, const std::string& pod) {
  return pods_->Remove(pod_namespace, pod);
}

void FakeKubelet::CancelList(const std::string& resource) {
  const std::unique_lock lock(mutex_);
  const auto found = connected_.find(resource);
  if (found != connected_.end() && !found->second.empty()) {
    found->second.back()->list_context.TryCancel();
  }
}

void FakeKubelet::DelayDial(absl::Duration delay) {
  const std::unique_lock lock(mutex_);
  dial_delay_ = delay;
}

void FakeKubelet::HoldDisconnects(bool hold) {
  const std::unique_lock lock(mutex_);
  hold_disconnects_ = hold;
  changed_.notify_all();
}

void FakeKubelet::DuringRegister(std::function<void(Stub& plugin)> probe) {
  const std::unique_lock lock(mutex_);
  probe_ = std::move(probe);
}

}  // namespace vfio_agent
