#include "base/worker_channel.h"

#include <array>
#include <type_traits>
#include <utility>

namespace muster::worker_channel {
namespace {

constexpr size_t kLengthBytes = 4;
// Version and type.
constexpr size_t kTagBytes = 2;

// Each message lists its fields once, in Fields() below; a Writer appends them and a Reader fills
// them, so that the two can't come apart.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class T>
  requires std::is_integral_v<T>
  void Field(T& value) {
    using Bits = std::make_unsigned_t<T>;
    auto bits = static_cast<Bits>(value);
    for (size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<char>(bits >> (8 * i) & 0xff));
    }
  }
  void Field(std::string& value) {
    auto size = static_cast<uint32_t>(value.size());
    Field(size);
    out_ += value;
  }
  template <size_t N>
  void Field(std::array<uint8_t, N>& bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), N);
  }
  // A bool, or whether an optional field follows.
  bool Present(bool has_value) {
    out_.push_back(has_value ? 1 : 0);
    return has_value;
  }
  // One of 0 .. `last`.
  uint8_t Choice(uint8_t value, uint8_t /*last*/) {
    out_.push_back(static_cast<char>(value));
    return value;
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <class T>
  requires std::is_integral_v<T>
  void Field(T& value) {
    using Bits = std::make_unsigned_t<T>;
    std::string_view bytes = Take(sizeof(T));
    Bits bits = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      bits |= static_cast<Bits>(static_cast<Bits>(static_cast<uint8_t>(bytes[i])) << (8 * i));
    }
    value = static_cast<T>(bits);
  }
  void Field(std::string& value) {
    uint32_t size = 0;
    Field(size);
    value = Take(size);
  }
  template <size_t N>
  void Field(std::array<uint8_t, N>& bytes) {
    std::string_view taken = Take(N);
    for (size_t i = 0; i < taken.size(); ++i) bytes[i] = static_cast<uint8_t>(taken[i]);
  }
  bool Present(bool has_value) { return Choice(has_value ? 1 : 0, 1) == 1; }
  uint8_t Choice(uint8_t /*value*/, uint8_t last) {
    uint8_t choice = 0;
    Field(choice);
    if (choice <= last) return choice;
    ok_ = false;
    return 0;
  }

  // Every byte was asked for, and no byte beyond the end.
  bool Filled() const { return ok_ && in_.empty(); }

 private:
  // The next `size` bytes; nothing, and from then on nothing ever, if there are fewer.
  std::string_view Take(size_t size) {
    if (size > in_.size()) {
      ok_ = false;
      in_ = {};
      return {};
    }
    std::string_view taken = in_.substr(0, size);
    in_.remove_prefix(size);
    return taken;
  }

  std::string_view in_;
  bool ok_ = true;
};

template <class Io>
void Fields(Io& io, Commit& m) {
  io.Field(m.step);
  io.Field(m.directory);
}

template <class Io>
void Fields(Io& io, Hello& m) {
  io.Field(m.worker_id);
  io.Field(m.pid);
  io.Field(m.sdk_version);
}

template <class Io>
void Fields(Io& io, SetKey& m) {
  io.Field(m.request);
  io.Field(m.key);
  io.Field(m.value);
}

template <class Io>
void Fields(Io& io, GetKey& m) {
  io.Field(m.request);
  io.Field(m.key);
  io.Field(m.wait_ms);
}

template <class Io>
void Fields(Io& io, ShardDone& m) {
  io.Field(m.request);
  io.Field(m.shard_count);
  Fields(io, m.commit);
}

template <class Io>
void Fields(Io& io, CommitPublished& m) {
  io.Field(m.request);
  Fields(io, m.commit);
}

template <class Io>
void Fields(Io& io, Welcome& m) {
  io.Field(m.world.round.value);
  io.Field(m.world.id.bytes);
  io.Field(m.key.bytes);
  io.Field(m.rank.value);
  io.Field(m.world_size);
  io.Field(m.local_rank.value);
  io.Field(m.local_world_size);
  io.Field(m.address);
  io.Field(m.attempt);
  io.Field(m.restarts_charged);
  if (io.Present(m.resume.has_value())) {
    if (!m.resume) m.resume.emplace();
    Fields(io, *m.resume);
  }
}

template <class Io>
void Fields(Io& io, Answer& m) {
  io.Field(m.request);
  io.Field(m.code);
  io.Field(m.message);
  io.Field(m.value);
}

template <class Io>
void Fields(Io& io, Abort& m) {
  io.Field(m.world_id.bytes);
  io.Field(m.culprit.value);
  io.Field(m.reason);
}

template <class Io>
void Fields(Io& io, StepDone& m) {
  io.Field(m.step);
  // Written only where it differs: a Writer's message may be constant.
  bool can_save = io.Present(m.can_save);
  if (can_save != m.can_save) m.can_save = can_save;
}

template <class Io>
void Fields(Io& io, AnnounceCheckpoint& m) {
  io.Field(m.request);
  io.Field(m.step);
}

template <class Io>
void Fields(Io& io, Activity& m) {
  // Written only where they differ: a Writer's message may be constant.
  auto kind = static_cast<Activity::Kind>(
      io.Choice(static_cast<uint8_t>(m.kind), static_cast<uint8_t>(Activity::Kind::kWaits)));
  if (kind != m.kind) m.kind = kind;
  int64_t lasted_ns = m.lasted.count();
  io.Field(lasted_ns);
  if (lasted_ns != m.lasted.count()) m.lasted = Duration(lasted_ns);
}

template <class Io>
void Fields(Io& io, Pong& m) {
  io.Field(m.number);
  Fields(io, m.activity);
}

template <class Io>
void Fields(Io& /*io*/, CheckpointWanted& /*m*/) {}

template <class Io>
void Fields(Io& io, CheckpointAt& m) {
  io.Field(m.step);
}

template <class Io>
void Fields(Io& io, Ping& m) {
  io.Field(m.number);
}

template <class Io>
void Fields(Io& io, CheckpointKnown& m) {
  io.Field(m.step);
}

// Type numbers on the wire: the place in Message, from 1. New messages go at its end.
template <size_t I = 0>
bool MakeMessage(uint8_t type, Message& message) {
  if constexpr (I < std::variant_size_v<Message>) {
    if (type == I + 1) {
      message.emplace<I>();
      return true;
    }
    return MakeMessage<I + 1>(type, message);
  } else {
    return false;
  }
}

Decoded Malformed(std::string problem) {
  Decoded decoded;
  decoded.kind = Decoded::Kind::kMalformed;
  decoded.problem = std::move(problem);
  return decoded;
}

}  // namespace

std::string Encode(const Message& message) {
  std::string frame(kLengthBytes, '\0');
  frame.push_back(static_cast<char>(kVersion));
  frame.push_back(static_cast<char>(message.index() + 1));
  Writer writer(frame);
  // Fields() takes what it may fill; a Writer only reads.
  std::visit(
      [&writer](const auto& m) { Fields(writer, const_cast<std::decay_t<decltype(m)>&>(m)); },
      message);
  size_t length = frame.size() - kLengthBytes;
  for (size_t i = 0; i < kLengthBytes; ++i) frame[i] = static_cast<char>(length >> (8 * i) & 0xff);
  return frame;
}

Decoded Decode(std::string_view buffer) {
  if (buffer.size() < kLengthBytes) return {};
  uint32_t length = 0;
  Reader(buffer.substr(0, kLengthBytes)).Field(length);
  if (length < kTagBytes || length > kMaxFrame - kLengthBytes) {
    return Malformed("a frame of " + std::to_string(length) + " bytes");
  }
  // Version and type are judged as soon as they are there: a stranger is told apart at once.
  std::string_view rest = buffer.substr(kLengthBytes);
  if (!rest.empty() && static_cast<uint8_t>(rest[0]) != kVersion) {
    return Malformed("version " + std::to_string(static_cast<uint8_t>(rest[0])) +
                     " of the worker channel; this side speaks version " +
                     std::to_string(kVersion));
  }
  Decoded decoded;
  if (rest.size() >= kTagBytes && !MakeMessage(static_cast<uint8_t>(rest[1]), decoded.message)) {
    return Malformed("a message of unknown type " + std::to_string(static_cast<uint8_t>(rest[1])));
  }
  if (rest.size() < length) return {};
  Reader reader(rest.substr(kTagBytes, length - kTagBytes));
  std::visit([&reader](auto& m) { Fields(reader, m); }, decoded.message);
  if (!reader.Filled()) {
    return Malformed("a message of type " + std::to_string(static_cast<uint8_t>(rest[1])) +
                     " whose fields don't fill its frame");
  }
  decoded.kind = Decoded::Kind::kMessage;
  decoded.consumed = kLengthBytes + length;
  return decoded;
}

}  // namespace muster::worker_channel
