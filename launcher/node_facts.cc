#include "launcher/node_facts.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "launcher/machine_facts.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// What a message carries.
constexpr size_t kMostBytes = 64;

bool IsVersion(std::string_view text) {
  const bool is_made_so = std::all_of(text.begin(), text.end(),
                                      [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return is_made_so && text.size() <= kMostBytes && text.find('.') != std::string_view::npos &&
         text.front() != '.' && text.back() != '.';
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// With all links followed; empty if nothing is there.
std::string RealPath(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  return realpath(path.c_str(), real.data()) != nullptr ? real.data() : "";
}

// What follows `mark` in the last part of `path`, if that is a version.
std::string VersionAfter(std::string_view mark, std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(mark)) return "";
  name.remove_prefix(mark.size());
  return !name.empty() && IsVersion(name) ? std::string(name) : "";
}

std::vector<std::string> LibraryFolders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    for (std::string_view folder : Split(std::string_view(path), ':')) folders.emplace_back(folder);
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/usr/lib64", "/usr/local/lib", "/usr/local/cuda/lib64"}) {
    folders.emplace_back(folder);
  }
  return folders;
}

}  // namespace

std::string DriverVersionIn(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  for (std::string_view word : Split(line, ' ')) {
    if (!word.empty() && IsVersion(word)) return std::string(word);
  }
  return "";
}

std::string CudaVersionIn(const std::string& folder) {
  // {"cuda": {"name": ..., "version": "12.4.1"}, ...}: one value is not worth a parser.
  const std::string json = ReadText(folder + "/version.json");
  size_t at = json.find("\"cuda\"");
  if (at != std::string::npos) at = json.find("\"version\"", at);
  if (at != std::string::npos) {
    const std::vector<std::string_view> parts = Split(std::string_view(json).substr(at), '"');
    if (parts.size() > 3 && !parts[3].empty() && IsVersion(parts[3])) return std::string(parts[3]);
  }
  return VersionAfter("cuda-", RealPath(folder));
}

std::string NcclVersionIn(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string real = folder.empty() ? "" : RealPath(folder + "/libnccl.so.2");
    if (!real.empty()) return VersionAfter("libnccl.so.", real);
  }
  return "";
}

NodeFacts LookUpNodeFacts() {
  NodeFacts facts;
  facts.gpu_count = CountGpus();
  if (facts.gpu_count == 0) return facts;
  facts.driver_version = DriverVersionIn(ReadText("/proc/driver/nvidia/version"));
  const char* home = std::getenv("CUDA_HOME");
  facts.cuda_version = CudaVersionIn(home != nullptr && *home != '\0' ? home : "/usr/local/cuda");
  facts.nccl_version = NcclVersionIn(LibraryFolders());
  return facts;
}

}  // namespace muster::launcher
