#include "rendezvous/server/round_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

constexpr char kFirstLine[] = "muster rounds 1";

std::string FileIn(const std::string& directory) { return directory + "/rounds"; }

absl::Status Refusal(const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("can't keep the rounds in ", path, ": ", std::strerror(error)));
}

bool WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RoundStore>> RoundStore::Open(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return absl::InvalidArgumentError(
        absl::StrCat("can't make the state directory ", directory, ": ", std::strerror(errno)));
  std::unique_ptr<RoundStore> store(new RoundStore(directory));
  if (absl::Status status = store->Read(); !status.ok()) return status;
  // A directory that can't be written to is told at the start, not at the first round.
  if (absl::Status status = store->Write(); !status.ok())
    return absl::InvalidArgumentError(status.message());
  return store;
}

RoundId RoundStore::HighestRound(const std::string& run_id) const {
  auto found = worlds_.find(run_id);
  return found == worlds_.end() ? RoundId() : found->second.round;
}

absl::Status RoundStore::Keep(const std::string& run_id, const World& world) {
  worlds_[run_id] = world;
  return Write();
}

absl::Status RoundStore::Forget(const std::string& run_id) {
  if (worlds_.erase(run_id) == 0) return absl::OkStatus();
  return Write();
}

// Lines of "<run id in hexadecimal> <round> <world id>" after the first one.
absl::Status RoundStore::Read() {
  std::ifstream file(FileIn(directory_));
  if (!file.is_open()) return absl::OkStatus();
  auto malformed = [&](const std::string& line) {
    return absl::InvalidArgumentError(absl::StrCat(
        FileIn(directory_), " isn't a file of muster's: \"", absl::CHexEscape(line), "\""));
  };
  std::string line;
  if (!std::getline(file, line) || line != kFirstLine) return malformed(line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string run_id, id;
    uint64_t round = 0;
    if (!(words >> run_id >> round >> id) || run_id.size() % 2 != 0 ||
        run_id.find_first_not_of("0123456789abcdef") != std::string::npos)
      return malformed(line);
    WorldId world_id = WorldId::FromHex(id);
    if (world_id.IsNone()) return malformed(line);
    worlds_[absl::HexStringToBytes(run_id)] = {RoundId(round), world_id};
  }
  return absl::OkStatus();
}

absl::Status RoundStore::Write() const {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const auto& [run_id, world] : worlds_)
    absl::StrAppend(&text, absl::BytesToHexString(run_id), " ", world.round.value, " ",
                    world.id.ToHex(), "\n");
  const std::string path = FileIn(directory_), fresh = path + ".tmp";
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Refusal(fresh, errno);
  bool written = WriteAll(fd, text) && fsync(fd) == 0;
  int error = errno;
  close(fd);
  if (!written) return Refusal(fresh, error);
  if (rename(fresh.c_str(), path.c_str()) != 0) return Refusal(path, errno);
  int directory = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Refusal(directory_, errno);
  bool synced = fsync(directory) == 0;
  error = errno;
  close(directory);
  return synced ? absl::OkStatus() : Refusal(directory_, error);
}

}  // namespace muster::rendezvous
