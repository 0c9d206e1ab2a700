#include "test/conformance/widgets.h"

#include <chrono>

#include "absl/strings/str_format.h"

namespace vfio_agent::conformance {
namespace {

using Device = v1beta1::Device;

void AddTopology(const Faults& faults, int index, Device& device) {
  if (faults.Has("mixed-topology") && index == 1) return;
  auto& topology = *device.mutable_topology();
  if (faults.Has("empty-topology")) return;
  topology.add_nodes()->set_id(faults.Has("negative-node") ? -1 : index / 2);
}

std::string IdFor(const Faults& faults, const std::string& id) {
  if (faults.Has("long-id")) return id + std::string(60, 'x');
  if (faults.Has("odd-id")) return id + "/x";
  return id;
}

void AddDevice(const Faults& faults, const Widget& widget, int index,
               v1beta1::ListAndWatchResponse& list) {
  if (!widget.healthy && faults.Has("drop-sick")) return;
  Device& device = *list.add_devices();
  device.set_id(widget.id);
  const char* healthy = faults.Has("lower-case-health") ? "healthy" : "Healthy";
  // The kubelet has no other word for the first device, and would wait for it for ever.
  device.set_health(!widget.healthy ? "Unhealthy" : index == 0 ? healthy : "Healthy");
  AddTopology(faults, index, device);
}

}  // namespace

Widgets::Widgets(const Faults& faults) : faults_(faults) { Rename(0); }

void Widgets::Rename(int life) {
  const std::unique_lock lock(mutex_);
  widgets_.clear();
  for (int i = 0; i < 3; ++i) {
    const std::string id = absl::StrFormat("%04x:%02x:00.0", life, 10 + i);
    widgets_.push_back({.id = IdFor(faults_, id), .group = 10 + i});
  }
}

void Widgets::Empty() {
  const std::unique_lock lock(mutex_);
  widgets_.clear();
  ++version_;
  changed_.notify_all();
}

void Widgets::SetSick(const std::set<std::string>& ids) {
  const std::unique_lock lock(mutex_);
  for (Widget& widget : widgets_) {
    const bool healthy = !ids.contains(widget.id);
    if (widget.healthy == healthy) continue;
    widget.healthy = healthy;
    ++version_;
  }
  changed_.notify_all();
}

std::vector<Widget> Widgets::all() const {
  const std::unique_lock lock(mutex_);
  return widgets_;
}

v1beta1::ListAndWatchResponse Widgets::List() const {
  v1beta1::ListAndWatchResponse list;
  int index = 0;
  for (const Widget& widget : all()) AddDevice(faults_, widget, index++, list);
  for (int i = 0; i < 60000 && faults_.Has("huge-list"); ++i) {
    AddDevice(faults_, {.id = absl::StrFormat("%063d", i)}, i, list);
  }
  if (faults_.Has("duplicate-id")) *list.add_devices() = list.devices(0);
  return list;
}

Widgets::News Widgets::Wait(int& version) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(50),
                    [&] { return ending_ || version_ != version; });
  if (ending_) return News::kEnd;
  if (version_ == version) return News::kNone;
  version = version_;
  return News::kChanged;
}

void Widgets::EndStreams(bool end) {
  const std::unique_lock lock(mutex_);
  ending_ = end;
  changed_.notify_all();
}

void Widgets::SetRegistering(bool under_way) {
  const std::unique_lock lock(mutex_);
  registering_ = under_way;
  changed_.notify_all();
}

void Widgets::WaitWhileRegistering() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::seconds(6), [&] { return !registering_; });
}

int Widgets::StreamOpened() {
  const std::unique_lock lock(mutex_);
  ++opened_;
  return streams_++;
}

void Widgets::StreamClosed() {
  const std::unique_lock lock(mutex_);
  --streams_;
  changed_.notify_all();
}

int Widgets::streams() const {
  const std::unique_lock lock(mutex_);
  return streams_;
}

int Widgets::newest_stream() const {
  const std::unique_lock lock(mutex_);
  return opened_;
}

}  // namespace vfio_agent::conformance
