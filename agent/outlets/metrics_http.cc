#include "agent/outlets/metrics_http.h"

#include <civetweb.h>
#include <dlfcn.h>

#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/outlets/metrics.h"

namespace vfio_agent {
namespace {

struct Civetweb {
  decltype(&mg_start) start = nullptr;
  decltype(&mg_stop) stop = nullptr;
  decltype(&mg_get_request_info) request = nullptr;
  decltype(&mg_get_server_ports) ports = nullptr;
  decltype(&mg_write) write = nullptr;
};

template <typename Function>
bool Load(void* library, const char* name, Function& function) {
  // dlsym gives an object pointer; POSIX promises that it converts to a function pointer.
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool LoadAll(void* library, Civetweb& web) {
  return Load(library, "mg_start", web.start) && Load(library, "mg_stop", web.stop) &&
         Load(library, "mg_get_request_info", web.request) &&
         Load(library, "mg_get_server_ports", web.ports) && Load(library, "mg_write", web.write);
}

struct Answer {
  int code = 200;
  std::string body;
  const char* type = "text/plain; charset=utf-8";
};

const char* PhraseOf(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

Answer Ready(const AgentStatus& status) {
  if (!status.waits_for.empty()) {
    return {.code = 503, .body = absl::StrFormat("waits for %s\n", status.waits_for)};
  }
  // Ready all the same: what was bound is served, and a probe that failed would mend nothing.
  if (status.ready && status.mode.unread) return {.body = "ready; " + status.mode.reason + "\n"};
  if (status.ready) return {.body = "ready\n"};
  if (status.picture.at == absl::UnixEpoch()) {
    return {.code = 503, .body = "the node has not been read yet\n"};
  }
  std::string text = status.kubelet ? "" : "nobody answers on the kubelet's socket\n";
  for (const PluginStatus& plugin : status.plugins) {
    if (plugin.registered || plugin.units == 0) continue;
    text += absl::StrFormat("%s is not registered%s%s\n", plugin.resource,
                            plugin.last_error.empty() ? "" : ": ", plugin.last_error);
  }
  return {.code = 503, .body = text};
}

Answer AnswerTo(std::string_view method, std::string_view path,
                const MetricsHttp::Sources& sources) {
  if (method != "GET" && method != "HEAD") return {.code = 405, .body = "GET or HEAD only\n"};
  if (path == "/metrics") {
    return {.body = StatusToMetrics(*sources.status()),
            .type = "text/plain; version=0.0.4; charset=utf-8"};
  }
  if (path == "/healthz") {
    const std::string ailment = sources.ailment();
    return ailment.empty() ? Answer{.body = "ok\n"} : Answer{.code = 503, .body = ailment + "\n"};
  }
  if (path == "/readyz") return Ready(*sources.status());
  return {.code = 404, .body = "there are /metrics, /healthz and /readyz\n"};
}

// civetweb's spelling: "+9431" is the port on IPv4 and IPv6.
std::string ForCivetweb(const std::string& listen) {
  return listen.front() == ':' ? "+" + listen.substr(1) : listen;
}

// What civetweb says while it starts, on the thread that starts it.
thread_local std::string last_words;

// A callback of civetweb's learns only by this call which server it is of. The same for every
// server, and set before the first one starts.
decltype(&mg_get_request_info) request_info = nullptr;

}  // namespace

struct MetricsHttp::Running {
  ~Running() {
    if (context != nullptr) web.stop(context);
  }
  static int Handle(mg_connection* connection);

  std::unique_ptr<void, int (*)(void*)> library{nullptr, ::dlclose};
  Civetweb web;
  Sources sources;
  mg_context* context = nullptr;
};

int MetricsHttp::Running::Handle(mg_connection* connection) {
  const mg_request_info* const info = request_info(connection);
  const Running& self = *static_cast<const Running*>(info->user_data);
  const Answer answer = AnswerTo(info->request_method, info->local_uri, self.sources);
  std::string text = absl::StrFormat(
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
      answer.code, PhraseOf(answer.code), answer.type, answer.body.size());
  if (std::string_view(info->request_method) != "HEAD") text += answer.body;
  self.web.write(connection, text.data(), text.size());
  return answer.code;
}

MetricsHttp::MetricsHttp(std::unique_ptr<Running> running) : running_(std::move(running)) {}
MetricsHttp::~MetricsHttp() = default;

absl::StatusOr<std::unique_ptr<MetricsHttp>> MetricsHttp::Start(const std::string& listen,
                                                                Sources sources) {
  auto running = std::make_unique<Running>();
  running->library.reset(::dlopen("libcivetweb.so.1", RTLD_NOW));
  if (running->library == nullptr || !LoadAll(running->library.get(), running->web)) {
    return absl::NotFoundError("libcivetweb.so.1 is not installed (Debian: libcivetweb1)");
  }
  running->sources = std::move(sources);
  request_info = running->web.request;
  const std::string ports = ForCivetweb(listen);
  // A peer that sends nothing has a thread for a second at most. One who opens many connections
  // keeps the others waiting all the same: what decides about a restart asks the status socket.
  const char* options[] = {"listening_ports",
                           ports.c_str(),
                           "num_threads",
                           "8",
                           "request_timeout_ms",
                           "1000",
                           "enable_keep_alive",
                           "no",
                           "linger_timeout_ms",
                           "0",
                           nullptr};
  mg_callbacks callbacks = {};
  callbacks.begin_request = &Running::Handle;
  callbacks.log_message = [](const mg_connection*, const char* words) {
    last_words = words;
    return 1;  // not to be written anywhere
  };
  last_words.clear();
  running->context = running->web.start(&callbacks, running.get(), options);
  if (running->context == nullptr) {
    return absl::UnavailableError(absl::StrFormat("cannot listen on %s: %s", listen, last_words));
  }
  return std::unique_ptr<MetricsHttp>(new MetricsHttp(std::move(running)));
}

int MetricsHttp::port() const {
  std::array<mg_server_port, 2> ports = {};
  const int count = running_->web.ports(running_->context, ports.size(), ports.data());
  return count > 0 ? ports[0].port : 0;
}

}  // namespace vfio_agent
