#include "agent/torch_store/store_protocol.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

namespace muster::agent::torch_store {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kKeptBytes = size_t{64} << 10;
constexpr char kValidate = 0;
constexpr char kOf21[] =
    "a request of PyTorch 2.1, whose store isn't served; give --master-store=worker with that "
    "version";

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

void PutLittleEndian(uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Reads the arguments of one request. Every method returns whether to go on: not if bytes are
// missing (`wanted`: how many there must be) or if they are refused. Where it only measures, no
// text is copied: a large request that comes in pieces is looked at once for each of them.
class Arguments {
 public:
  enum class Purpose { kMeasure, kTake };
  Arguments(std::string_view bytes, Purpose purpose)
      : bytes_(bytes), is_measuring_(purpose == Purpose::kMeasure) {}

  size_t at() const { return at_; }
  size_t wanted() const { return wanted_; }
  const std::string& refusal() const { return refusal_; }

  bool Number(size_t size, uint64_t* value) {
    if (!Has(size)) return false;
    *value = LittleEndian(bytes_.substr(at_, size));
    at_ += size;
    return true;
  }
  bool SignedNumber(int64_t* value) {
    uint64_t bits = 0;
    if (!Number(8, &bits)) return false;
    *value = static_cast<int64_t>(bits);
    return true;
  }
  bool Key(std::string* key) { return Text("key", kMaxKeyBytes, key); }
  bool Value(std::string* value) { return Text("value", kMaxValueBytes, value); }

  bool Keys(std::vector<std::string>* keys) {
    uint64_t count = 0;
    if (!Count(&count)) return false;
    std::string measured;
    for (; count > 0; --count) {
      if (!Key(is_measuring_ ? &measured : &keys->emplace_back())) return false;
    }
    return true;
  }
  bool Pairs(std::vector<std::pair<std::string, std::string>>* pairs) {
    uint64_t count = 0;
    if (!Count(&count)) return false;
    std::pair<std::string, std::string> measured;
    for (; count > 0; --count) {
      auto& [key, value] = is_measuring_ ? measured : pairs->emplace_back();
      if (!Key(&key) || !Value(&value)) return false;
    }
    return true;
  }
  // Always false.
  bool Refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

 private:
  bool Has(uint64_t size) {
    if (at_ + size <= bytes_.size()) return true;
    wanted_ = at_ + size;
    if (wanted_ > kMaxRequestBytes) {
      return Refuse("a request of more than " + std::to_string(kMaxRequestBytes) + " bytes");
    }
    return false;
  }
  bool Count(uint64_t* count) {
    if (!Number(8, count)) return false;
    if (*count <= kMaxKeysOfARequest) return true;
    return Refuse("a request with " + std::to_string(*count) + " keys (" +
                  std::to_string(kMaxKeysOfARequest) + " at most)");
  }
  bool Text(const char* what, size_t most, std::string* text) {
    uint64_t size = 0;
    if (!Number(8, &size)) return false;
    if (size > most) {
      return Refuse(std::string("a ") + what + " of " + std::to_string(size) + " bytes (" +
                    std::to_string(most) + " at most)");
    }
    if (!Has(size)) return false;
    if (!is_measuring_) text->assign(bytes_.substr(at_, size));
    at_ += size;
    return true;
  }

  std::string_view bytes_;
  bool is_measuring_;
  size_t at_ = 0;
  size_t wanted_ = 0;
  std::string refusal_;
};

// ---- arguments of each request -------------------------------------------------------------

bool Read(Arguments& a, Set& r) { return a.Key(&r.key) && a.Value(&r.value); }
bool Read(Arguments& a, CompareSet& r) {
  return a.Key(&r.key) && a.Value(&r.expected) && a.Value(&r.desired);
}
bool Read(Arguments& a, Get& r) { return a.Key(&r.key); }
bool Read(Arguments& a, Add& r) { return a.Key(&r.key) && a.SignedNumber(&r.delta); }
bool Read(Arguments& a, Check& r) { return a.Keys(&r.keys); }
bool Read(Arguments& a, Wait& r) { return a.Keys(&r.keys); }
bool Read(Arguments&, CancelWait&) { return true; }
bool Read(Arguments&, CountKeys&) { return true; }
bool Read(Arguments&, ListKeys&) { return true; }
bool Read(Arguments& a, Delete& r) { return a.Key(&r.key); }
bool Read(Arguments& a, Append& r) { return a.Key(&r.key) && a.Value(&r.value); }
bool Read(Arguments& a, MultiGet& r) { return a.Keys(&r.keys); }
bool Read(Arguments& a, MultiSet& r) { return a.Pairs(&r.pairs); }
bool Read(Arguments& a, Ping& r) {
  uint64_t nonce = 0;
  if (!a.Number(sizeof r.nonce, &nonce)) return false;
  r.nonce = static_cast<uint32_t>(nonce);
  return true;
}
bool Read(Arguments& a, QueuePush& r) { return a.Key(&r.queue) && a.Value(&r.value); }
bool Read(Arguments& a, QueuePop& r) { return a.Key(&r.queue); }
bool Read(Arguments& a, QueueLength& r) { return a.Key(&r.queue); }
bool Read(Arguments& a, Barrier& r) { return a.Key(&r.key) && a.SignedNumber(&r.count); }

using Reader = std::optional<Request> (*)(Arguments&);

template <class OneRequest>
std::optional<Request> As(Arguments& arguments) {
  OneRequest request;
  if (!Read(arguments, request)) return std::nullopt;
  return request;
}

// Until 2.0 it watched a key, which only C++ could ask for, and in 2.1 it deletes one.
std::optional<Request> Delete21(Arguments& arguments) {
  arguments.Refuse(kOf21);
  return std::nullopt;
}

// Until 2.0 it set several keys, which only C++ could ask for, and in 2.1 it cancels a wait.
std::optional<Request> CancelWait21(Arguments& arguments) {
  arguments.Refuse(kOf21);
  return std::nullopt;
}

std::optional<Request> SecondValidate(Arguments& arguments) {
  arguments.Refuse("a second greeting");
  return std::nullopt;
}

// The byte that names a request is its place in the list of the dialect.
constexpr std::array<Reader, 13> kBare = {
    As<Set>,  As<CompareSet>, As<Get>,    As<Add>,      As<Check>,    As<Wait>,      As<CountKeys>,
    Delete21, As<Delete>,     As<Append>, As<MultiGet>, CancelWait21, As<CancelWait>};
constexpr std::array<Reader, 19> kValidated = {
    SecondValidate, As<Set>,         As<CompareSet>, As<Get>,    As<Add>,
    As<Check>,      As<Wait>,        As<CountKeys>,  As<Delete>, As<Append>,
    As<MultiGet>,   As<MultiSet>,    As<CancelWait>, As<Ping>,   As<QueuePush>,
    As<QueuePop>,   As<QueueLength>, As<ListKeys>,   As<Barrier>};

}  // namespace

void RequestReader::Append(std::string_view bytes) {
  if (!refusal_.empty()) return;
  // What was taken goes when it is most of the buffer, so that each byte moves a few times at most.
  if (taken_ > buffer_.size() / 2) {
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  buffer_.append(bytes);
}

bool RequestReader::TellDialect() {
  if (rest().front() != kValidate) {
    dialect_ = Dialect::kBare;
    return true;
  }
  // Without the magic number it is the first byte of a Set, which is longer than this.
  wanted_ = 1 + kMagicBytes;
  if (buffered() < wanted_) return false;
  const bool is_magic = LittleEndian(rest().substr(1, kMagicBytes)) == kMagic;
  dialect_ = is_magic ? Dialect::kValidated : Dialect::kBare;
  if (is_magic) taken_ += wanted_;
  wanted_ = 1;
  return buffered() >= wanted_;
}

std::optional<Request> RequestReader::Next() {
  if (!refusal_.empty() || buffered() < wanted_) return std::nullopt;
  if (dialect_ == Dialect::kUnknown && !TellDialect()) return std::nullopt;
  std::span<const Reader> readers = kBare;
  if (dialect_ == Dialect::kValidated) readers = kValidated;
  const auto name = static_cast<uint8_t>(rest().front());
  if (name >= readers.size()) {
    refusal_ = "an unknown request (" + std::to_string(name) + ")";
    return std::nullopt;
  }
  Arguments measured(rest().substr(1), Arguments::Purpose::kMeasure);
  if (!readers[name](measured)) {
    refusal_ = measured.refusal();
    wanted_ = 1 + measured.wanted();
    return std::nullopt;
  }
  Arguments arguments(rest().substr(1), Arguments::Purpose::kTake);
  std::optional<Request> request = readers[name](arguments);
  taken_ += 1 + arguments.at();
  wanted_ = 1;
  if (taken_ == buffer_.size()) {
    // A large request's room isn't kept.
    if (taken_ > kKeptBytes) buffer_ = {};
    buffer_.clear();
    taken_ = 0;
  }
  return request;
}

void PutNumber(int64_t value, std::string& out) {
  PutLittleEndian(static_cast<uint64_t>(value), 8, out);
}

void PutNonce(uint32_t value, std::string& out) { PutLittleEndian(value, 4, out); }

void PutText(std::string_view text, std::string& out) {
  PutNumber(static_cast<int64_t>(text.size()), out);
  out.append(text);
}

}  // namespace muster::agent::torch_store
