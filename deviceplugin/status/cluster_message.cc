#include "deviceplugin/status/cluster_message.h"

namespace vfio_agent {

namespace wire = status::v1;

void PutMode(const ModeStatus& mode, wire::AgentStatus& message) {
  wire::Mode& into = *message.mutable_mode();
  into.set_mode(mode.mode);
  into.set_target(mode.target);
  into.set_state(mode.state);
  into.set_reason(mode.reason);
  into.set_label(mode.label);
  into.set_unread(mode.unread);
  into.set_since_ms(absl::ToUnixMillis(mode.since));
}

ModeStatus TakeMode(const wire::Mode& message) {
  return {.mode = message.mode(),
          .target = message.target(),
          .state = message.state(),
          .reason = message.reason(),
          .label = message.label(),
          .unread = message.unread(),
          .since = absl::FromUnixMillis(message.since_ms())};
}

void PutApi(const ApiStatus& api, wire::AgentStatus& message) {
  if (api.server.empty()) return;
  wire::Api& into = *message.mutable_api();
  into.set_server(api.server);
  into.set_node(api.node);
  into.set_connected(api.connected);
  into.set_written(api.written);
  into.set_last_error(api.last_error);
  into.set_last_error_ms(absl::ToUnixMillis(api.last_error_at));
  into.set_last_success_ms(absl::ToUnixMillis(api.last_success));
  for (const auto& [what, value] : api.requests) {
    wire::Requests& requests = *into.add_requests();
    requests.set_verb(what.first);
    requests.set_result(what.second);
    requests.set_value(value);
  }
  into.set_events_posted(api.events_posted);
  into.set_events_dropped(api.events_dropped);
  into.set_events_waiting(api.events_waiting);
}

ApiStatus TakeApi(const wire::Api& message) {
  ApiStatus api{.server = message.server(),
                .node = message.node(),
                .connected = message.connected(),
                .written = message.written(),
                .last_error = message.last_error(),
                .last_error_at = absl::FromUnixMillis(message.last_error_ms()),
                .last_success = absl::FromUnixMillis(message.last_success_ms()),
                .events_posted = message.events_posted(),
                .events_dropped = message.events_dropped(),
                .events_waiting = message.events_waiting()};
  for (const wire::Requests& requests : message.requests()) {
    api.requests[{requests.verb(), requests.result()}] = requests.value();
  }
  return api;
}

}  // namespace vfio_agent
