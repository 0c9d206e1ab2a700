#include "test/conformance/faulty_service.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace vfio_agent::conformance {
namespace {

using grpc::Status;
using grpc::StatusCode;
using Ids = std::vector<std::string>;

template <typename Repeated>
Ids ToIds(const Repeated& ids) {
  return {ids.begin(), ids.end()};
}

Status Invalid(const std::string& text) { return {StatusCode::INVALID_ARGUMENT, text}; }

const Widget* Find(const std::vector<Widget>& widgets, const std::string& id) {
  const auto found = std::ranges::find(widgets, id, &Widget::id);
  return found == widgets.end() ? nullptr : &*found;
}

}  // namespace

Status WidgetService::GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                             v1beta1::DevicePluginOptions* response) {
  if (faults_.Has("options-after-register")) widgets_.WaitWhileRegistering();
  response->set_pre_start_required(true);
  response->set_get_preferred_allocation_available(true);
  return Status::OK;
}

Status WidgetService::ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                                   grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  if (faults_.Has("list-after-register")) widgets_.WaitWhileRegistering();
  const int before = widgets_.StreamOpened();
  const int mine = widgets_.newest_stream();
  if (faults_.Has("late-list")) std::this_thread::sleep_for(std::chrono::seconds(4));
  v1beta1::ListAndWatchResponse list = widgets_.List();
  if (before > 0 && faults_.Has("second-stream-empty")) list.clear_devices();
  int version = 0;
  for (Widgets::News news = widgets_.Wait(version); news != Widgets::News::kEnd;
       news = widgets_.Wait(version)) {
    if (context->IsCancelled()) break;
    if (faults_.Has("one-stream") && widgets_.newest_stream() != mine) break;
    if (news == Widgets::News::kNone && !faults_.Has("chatty")) continue;
    if (before > 0 && version > 1 && faults_.Has("second-stream-deaf")) continue;
    if (version > 1) list = widgets_.List();
    if (!writer->Write(list)) break;
  }
  widgets_.StreamClosed();
  return Status::OK;
}

Status WidgetService::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                               v1beta1::AllocateResponse* response) {
  if (faults_.Has("slow-allocate")) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  if (faults_.Has("allocate-once") && request->container_requests_size() == 1 && answers_++ > 2) {
    return {StatusCode::FAILED_PRECONDITION, "given away already"};
  }
  for (const auto& container : request->container_requests()) {
    Status status = Answer(ToIds(container.devices_ids()), *response->add_container_responses());
    if (!status.ok()) return status;
    if (faults_.Has("first-container-only")) break;
  }
  if (faults_.Has("reversed-containers")) {
    std::reverse(response->mutable_container_responses()->begin(),
                 response->mutable_container_responses()->end());
  }
  if (faults_.Has("no-container")) response->clear_container_responses();
  return Status::OK;
}

Status WidgetService::Answer(const Ids& ids, v1beta1::ContainerAllocateResponse& answer) {
  const std::vector<Widget> widgets = widgets_.all();
  std::vector<Widget> chosen;
  for (const std::string& id : ids) {
    const Widget* widget = Find(widgets, id);
    if (widget == nullptr && id.empty() && faults_.Has("skip-empty")) continue;
    if (widget == nullptr && !id.empty() && faults_.Has("skip-unknown")) continue;
    if (widget == nullptr) return Invalid(absl::StrFormat("no device '%s'", id));
    if (Find(chosen, id) != nullptr && faults_.Has("skip-duplicate")) continue;
    if (Find(chosen, id) != nullptr) return Invalid(absl::StrFormat("'%s' twice", id));
    if (!widget->healthy && !faults_.Has("give-sick")) {
      return {StatusCode::FAILED_PRECONDITION, absl::StrFormat("'%s' is sick", id)};
    }
    chosen.push_back(*widget);
  }
  if (!faults_.Has("as-asked")) std::ranges::sort(chosen, {}, &Widget::id);
  AddNodes(chosen, answer);
  AddVariable(chosen, answer);
  if (faults_.Has("counts-answers")) {
    (*answer.mutable_envs())["ANSWER"] = std::to_string(answers_++);
  }
  if (faults_.Has("nameless-variable")) (*answer.mutable_envs())[""] = "x";
  return Status::OK;
}

void WidgetService::AddNodes(const std::vector<Widget>& chosen,
                             v1beta1::ContainerAllocateResponse& answer) const {
  const auto add = [&](const std::string& host, const std::string& inside) {
    v1beta1::DeviceSpec& node = *answer.add_devices();
    node.set_host_path(host);
    node.set_container_path(inside);
    node.set_permissions(faults_.Has("odd-permissions") ? "rwx"
                         : faults_.Has("read-only")     ? "r"
                                                        : "mrw");
  };
  if (!faults_.Has("no-vfio-vfio")) add("/dev/vfio/vfio", "/dev/vfio/vfio");
  for (const Widget& widget : chosen) {
    const std::string path = absl::StrFormat("/dev/vfio/%d", widget.group);
    if (faults_.Has("relative-path")) {
      add(path.substr(1), path);
    } else if (faults_.Has("missing-node")) {
      add(path + "0", path);
    } else {
      add(path, faults_.Has("renamed-node") ? "/dev/gpu" + path.substr(10) : path);
    }
    if (faults_.Has("node-twice")) add(path, path);
  }
}

void WidgetService::AddVariable(const std::vector<Widget>& chosen,
                                v1beta1::ContainerAllocateResponse& answer) const {
  Ids addresses;
  for (const Widget& widget : chosen) addresses.push_back(widget.id);
  if (faults_.Has("companion-address")) addresses.push_back("0000:0a:00.1");
  if (faults_.Has("short-address")) addresses[0] = addresses[0].substr(5);
  const char* name = faults_.Has("odd-variable") ? "PCI_RESOURCE_EXAMPLE_COM_A_WIDGET"
                                                 : "PCI_RESOURCE_EXAMPLE_COM_A-WIDGET";
  (*answer.mutable_envs())[name] =
      absl::StrJoin(addresses, faults_.Has("spaced-addresses") ? ", " : ",");
}

Status WidgetService::GetPreferredAllocation(grpc::ServerContext*,
                                             const v1beta1::PreferredAllocationRequest* request,
                                             v1beta1::PreferredAllocationResponse* response) {
  for (const auto& container : request->container_requests()) {
    const Ids available = ToIds(container.available_deviceids());
    const size_t size = static_cast<size_t>(container.allocation_size());
    auto& chosen = *response->add_container_responses()->mutable_deviceids();
    if (size > available.size()) {
      if (faults_.Has("preferred-fails")) return Invalid("not so many");
      if (!faults_.Has("preferred-what-there-is")) continue;
    }
    Ids order = faults_.Has("forgets-must") ? Ids() : ToIds(container.must_include_deviceids());
    for (const std::string& id : available) {
      if (std::ranges::count(order, id) == 0) order.push_back(id);
    }
    if (faults_.Has("prefers-foreign")) order[0] = widgets_.all()[0].id;
    const size_t most = faults_.Has("prefers-all") ? order.size() : std::min(size, order.size());
    chosen.Add(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most));
  }
  return Status::OK;
}

Status WidgetService::PreStartContainer(grpc::ServerContext*,
                                        const v1beta1::PreStartContainerRequest* request,
                                        v1beta1::PreStartContainerResponse*) {
  const std::vector<Widget> widgets = widgets_.all();
  if (faults_.Has("prestart-once") && answers_++ > 0) return Invalid("started already");
  for (const std::string& id : request->devices_ids()) {
    if (Find(widgets, id) == nullptr && !faults_.Has("prestart-anything")) {
      return Invalid(absl::StrFormat("no device '%s'", id));
    }
  }
  return Status::OK;
}

}  // namespace vfio_agent::conformance
