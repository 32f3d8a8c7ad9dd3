#include "launcher/log_setup.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "base/visible_text.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace muster::launcher {
namespace {

// The message, which names nodes and jobs as others have named them.
class VisibleMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const std::string text = VisibleText({message.payload.data(), message.payload.size()}, "\n\t");
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<VisibleMessage>();
  }
};

std::unique_ptr<spdlog::formatter> LogLine() {
  auto line = std::make_unique<spdlog::pattern_formatter>();
  line->add_flag<VisibleMessage>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %*");
  return line;
}

}  // namespace

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
  logger->set_formatter(LogLine());
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace muster::launcher
