#include "agent/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nlohmann/json.hpp"

namespace muster::agent {
namespace {

constexpr size_t kMostRead = 16 << 20;
constexpr size_t kMostText = 16 << 10;

std::optional<std::string> ReadBounded(const std::string& path) {
  // Not blocking: a worker could have put a fifo there.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return std::nullopt;
  struct stat status {};
  std::string text;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    text.resize(std::min(kMostRead, static_cast<size_t>(status.st_size)));
    size_t size = 0;
    while (size < text.size()) {
      ssize_t got = read(fd, text.data() + size, text.size() - size);
      if (got <= 0) break;
      size += static_cast<size_t>(got);
    }
    text.resize(size);
  }
  close(fd);
  if (text.empty()) return std::nullopt;
  return text;
}

// The end of a long text, in whole lines: that is where a traceback names the error.
std::string EndOf(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() <= kMostText) return text;
  size_t begin = text.size() - kMostText;
  const size_t line = text.find('\n', begin);
  if (line != std::string::npos) begin = line + 1;
  return "...\n" + text.substr(begin);
}

std::string StringAt(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return "";
  auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::optional<ErrorRecord> ReadErrorFile(const std::string& path) {
  std::optional<std::string> raw = ReadBounded(path);
  if (!raw) return std::nullopt;
  nlohmann::json record = nlohmann::json::parse(*raw, nullptr, /*allow_exceptions=*/false);
  std::string text;
  if (record.is_object() && record.contains("message")) {
    const nlohmann::json& message = record["message"];
    if (message.is_string()) {
      text = message.get<std::string>();
    } else if (message.is_object()) {
      if (message.contains("extraInfo")) text = StringAt(message["extraInfo"], "py_callstack");
      if (text.empty()) text = StringAt(message, "message");
    }
  }
  if (text.empty()) text = *raw;
  return ErrorRecord{.raw = *std::move(raw), .text = EndOf(std::move(text))};
}

std::string WithErrorCode(const std::string& raw, int code) {
  nlohmann::json record = nlohmann::json::parse(raw, nullptr, /*allow_exceptions=*/false);
  bool has_place =
      record.is_object() && record.contains("message") && record["message"].is_object();
  if (code == 0 || !has_place) return raw;
  record["message"]["errorCode"] = code;
  return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string OwnErrorRecord(const std::string& reason, int code, int64_t wall_time_s) {
  nlohmann::json record;
  record["message"] = {
      {"message", reason},
      {"extraInfo", {{"py_callstack", reason}, {"timestamp", std::to_string(wall_time_s)}}},
      {"errorCode", code}};
  return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string WriteErrorFile(const std::string& record, const std::string& path) {
  int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (fd < 0) return std::strerror(errno);
  std::string problem;
  for (size_t written = 0; written < record.size() && problem.empty();) {
    ssize_t put = write(fd, record.data() + written, record.size() - written);
    if (put >= 0) {
      written += static_cast<size_t>(put);
    } else if (errno != EINTR) {
      problem = std::strerror(errno);
    }
  }
  close(fd);
  return problem;
}

}  // namespace muster::agent
