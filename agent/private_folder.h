// An agent's private folder, and those that earlier agents have left behind: an agent that is
// killed in one instant with its guardian has nobody left to remove its folder, so the next agent
// of this user does. A folder in use is known by a lock on it, which ends with the process that
// holds it.
#ifndef MUSTER_AGENT_PRIVATE_FOLDER_H_
#define MUSTER_AGENT_PRIVATE_FOLDER_H_

#include <string>

namespace muster::agent {

class PrivateFolder {
 public:
  // Names it "<parent>/muster_<32 hex digits>"; nobody else has that name.
  explicit PrivateFolder(const std::string& parent);
  // Gives it up; whoever made it removes it before.
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }
  // Makes it, for this user alone, and holds it as in use; nothing if it is there. A failure is not
  // reported: whoever opens a file there says so. One thread at a time.
  void Make();

 private:
  const std::string path_;
  int fd_ = -1;
};

// Removes the folders of such names in `parent` that are this user's, in nobody's use, and older
// than a minute (one that is being made isn't held yet). Reads all names in `parent`.
void RemoveAbandonedFolders(const std::string& parent);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PRIVATE_FOLDER_H_
