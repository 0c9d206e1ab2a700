#include "agent/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace vfio_agent {
namespace {

constexpr char kTextPattern[] = "ts=%Y-%m-%dT%H:%M:%S.%e%z level=%l %v";
constexpr char kJsonPattern[] = R"({"ts":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

bool json_lines = false;

// Single-threaded on purpose: the servers' threads hand their events to the loop.
spdlog::logger& Logger() {
  static spdlog::logger logger("vfio-agent", std::make_shared<spdlog::sinks::stderr_sink_st>());
  return logger;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void SetUpLog(const std::string& level, const std::string& format) {
  json_lines = format == "json";
  Logger().set_pattern(json_lines ? kJsonPattern : kTextPattern);
  Logger().set_level(spdlog::level::from_str(level));
  Logger().flush_on(spdlog::level::debug);
}

void Log(const Event& event) {
  const spdlog::level::level_enum level = ToSpdlog(event.level);
  if (!Logger().should_log(level)) return;
  Logger().log(level, spdlog::string_view_t(json_lines ? ToJsonFields(event) : ToText(event)));
}

}  // namespace vfio_agent
