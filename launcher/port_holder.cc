#include "launcher/port_holder.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

// Links in /proc/<pid>/fd of the sockets that listen on the port: "socket:[12345]".
std::set<std::string> ListeningSockets(uint16_t port) {
  constexpr std::string_view kListening = "0A";
  std::set<std::string> links;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      // sl local remote state queues timer retransmits uid timeout inode
      std::istringstream fields(line);
      std::string sl, local, remote, state, skipped, inode;
      fields >> sl >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      size_t colon = local.rfind(':');
      uint32_t local_port = 0;
      if (state != kListening || colon == std::string::npos) continue;
      std::from_chars(local.data() + colon + 1, local.data() + local.size(), local_port, 16);
      if (local_port == port) links.insert("socket:[" + inode + "]");
    }
  }
  return links;
}

bool Holds(const fs::path& process, const std::set<std::string>& links) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(process / "fd", error)) {
    fs::path link = fs::read_symlink(entry.path(), error);
    if (!error && links.contains(link.string())) return true;
  }
  return false;
}

}  // namespace

std::string HolderOfPort(uint16_t port) {
  std::set<std::string> links = ListeningSockets(port);
  if (links.empty()) return "";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!Holds(entry.path(), links)) continue;
    std::ifstream file(entry.path() / "comm");
    std::string name;
    std::getline(file, name);
    return Cat("process ", pid, " (", name, ")");
  }
  return "";
}

}  // namespace muster::launcher
