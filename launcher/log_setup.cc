#include "launcher/log_setup.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace muster::launcher {

void SetUpLog(LogVolume volume) {
  // spdlog shares its loggers with its registry.
  auto logger =
      std::make_shared<spdlog::logger>("muster", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  spdlog::level::level_enum level =
      volume == LogVolume::kEvents ? spdlog::level::info : spdlog::level::warn;
  const char* wanted = std::getenv("LOGLEVEL");
  std::string name = wanted != nullptr ? wanted : "";
  if (name == "DEBUG") level = spdlog::level::debug;
  if (name == "INFO") level = spdlog::level::info;
  if (name == "WARNING") level = spdlog::level::warn;
  if (name == "ERROR" || name == "CRITICAL") level = spdlog::level::err;
  logger->set_level(level);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace muster::launcher
