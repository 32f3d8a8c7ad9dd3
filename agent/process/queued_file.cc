#include "agent/process/queued_file.h"

#include <atomic>
#include <utility>

#include "agent/process/log_file.h"

namespace muster::agent {
namespace {

constexpr char kNoAnswer[] = "its disk doesn't answer";

}  // namespace

struct QueuedFile::File {
  explicit File(Options options)
      : path(options.path),
        say(std::move(options.say)),
        log(std::move(options.path), options.max_bytes) {}

  // All below but `written_bytes`: on the file's thread.
  void SayOnce() {
    SayFailure();
    if (is_drop_said || !log.has_dropped()) return;
    is_drop_said = true;
    if (say) {
      say("muster: " + path + " has reached --log-max-bytes again; what is older than " + path +
          ".1 is gone");
    }
  }

  void SayFailure() {
    if (is_failure_said || log.failure().empty()) return;
    is_failure_said = true;
    if (say) {
      say("muster: cannot write " + path + ": " + log.failure() + "; the job goes on without it");
    }
  }

  const std::string path;
  const std::function<void(const std::string&)> say;
  LogFile log;
  bool is_failure_said = false;
  bool is_drop_said = false;
  std::atomic<uint64_t> written_bytes{0};
};

QueuedFile::QueuedFile(Options options) : path_(options.path), thread_(options.thread) {
  if (options.path.empty()) return;
  file_ = std::make_shared<File>(std::move(options));
  // Refused: so will be all that is written, and counted.
  thread_->Offer(0, [file = file_] {
    file->log.Open();
    file->SayOnce();
  });
}

QueuedFile::~QueuedFile() {
  if (file_ == nullptr) return;
  // The last to let go of it is the thread: closing may block.
  thread_->Post([file = std::exchange(file_, nullptr)] { file->log.Close(); });
}

void QueuedFile::Write(std::string_view bytes) {
  if (file_ == nullptr) return;
  given_bytes_ += bytes.size();
  bool is_taken = thread_->Offer(bytes.size(), [file = file_, text = std::string(bytes)] {
    uint64_t lost_before = file->log.lost_bytes();
    file->log.Write(text);
    file->written_bytes += text.size() - (file->log.lost_bytes() - lost_before);
    file->SayOnce();
  });
  if (!is_taken) refused_bytes_ += bytes.size();
}

void QueuedFile::Close(std::function<void(LostOutput)> done) {
  if (file_ == nullptr) return done({});
  thread_->Post([file = file_, refused = refused_bytes_, done = std::move(done)] {
    file->log.Close();
    std::string reason = file->log.failure().empty() ? kNoAnswer : file->log.failure();
    done({file->path, std::move(reason), file->log.lost_bytes() + refused});
  });
}

LostOutput QueuedFile::LostSoFar() const {
  if (file_ == nullptr) return {};
  return {file_->path, kNoAnswer, given_bytes_ - file_->written_bytes};
}

}  // namespace muster::agent
