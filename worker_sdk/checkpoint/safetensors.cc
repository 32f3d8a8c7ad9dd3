#include "worker_sdk/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace muster::safetensors {
namespace {

using nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kSizeWord = 8;
constexpr uint64_t kAlignment = 8;

struct Dtype {
  const char* name;
  uint64_t bytes;
};
constexpr std::array<Dtype, 15> kDtypes = {{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"F8_E5M2", 1},
                                            {"F8_E4M3", 1},
                                            {"I16", 2},
                                            {"U16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"I32", 4},
                                            {"U32", 4},
                                            {"F32", 4},
                                            {"I64", 8},
                                            {"U64", 8},
                                            {"F64", 8}}};

// 0: unknown.
uint64_t ElementBytes(const std::string& dtype) {
  for (const Dtype& known : kDtypes) {
    if (dtype == known.name) return known.bytes;
  }
  return 0;
}

// Bytes of a tensor; none on overflow.
std::optional<uint64_t> TensorBytes(const TensorEntry& tensor) {
  uint64_t bytes = ElementBytes(tensor.dtype);
  // Zeros first: a product that is zero doesn't overflow, in whichever order.
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return 0;
  for (uint64_t dimension : tensor.shape) {
    if (bytes > std::numeric_limits<uint64_t>::max() / dimension) return std::nullopt;
    bytes *= dimension;
  }
  return bytes;
}

std::string Quoted(const std::string& name) { return "\"" + name + "\""; }

// Parses a JSON object, refusing repeated names (nlohmann keeps the last of them). `repeated` is
// the first such name.
json ParseObject(std::string_view text, std::string* repeated) {
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) {
      names.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      names.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names.back().insert(name).second && repeated->empty()) *repeated = Quoted(name);
    }
    return true;
  };
  return json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
}

// A JSON array of non-negative integers.
std::optional<std::vector<uint64_t>> Numbers(const json& array) {
  if (!array.is_array()) return std::nullopt;
  std::vector<uint64_t> numbers;
  for (const json& number : array) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<uint64_t>());
  }
  return numbers;
}

// The reason why `value` isn't a tensor's description, or nothing and `tensor` is filled.
std::string ReadTensor(const json& value, TensorEntry* tensor) {
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    return "it lacks dtype, shape or data_offsets";
  }
  if (!value["dtype"].is_string()) return "its dtype isn't a text";
  tensor->dtype = value["dtype"].get<std::string>();
  if (ElementBytes(tensor->dtype) == 0) return "its dtype " + Quoted(tensor->dtype) + " is unknown";
  const auto shape = Numbers(value["shape"]);
  if (!shape.has_value()) return "its shape isn't a list of sizes";
  tensor->shape = *shape;
  const auto offsets = Numbers(value["data_offsets"]);
  if (!offsets.has_value() || offsets->size() != 2) return "its data_offsets aren't two offsets";
  tensor->begin = (*offsets)[0];
  tensor->end = (*offsets)[1];
  if (tensor->begin > tensor->end) return "its data_offsets end before they begin";
  const auto bytes = TensorBytes(*tensor);
  if (!bytes.has_value() || *bytes != tensor->bytes()) {
    return "its dtype and shape don't fit the " + std::to_string(tensor->bytes()) +
           " bytes of its data_offsets";
  }
  return "";
}

bool IsStringMap(const json& value) {
  return value.is_object() &&
         std::all_of(value.begin(), value.end(), [](const json& text) { return text.is_string(); });
}

// The reason why `tensors`, sorted, don't cover `data_bytes` bytes exactly; or nothing.
std::string CheckCover(const std::vector<TensorEntry>& tensors, uint64_t data_bytes) {
  uint64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != covered) {
      return "tensor " + Quoted(tensor.name) + " begins at " + std::to_string(tensor.begin) +
             (tensor.begin < covered ? ", within the one before it" : ", after a hole") +
             " that ends at " + std::to_string(covered);
    }
    covered = tensor.end;
  }
  if (covered == data_bytes) return "";
  return "the tensors have " + std::to_string(covered) + " bytes, the file has " +
         std::to_string(data_bytes) + " for them" +
         (covered > data_bytes ? " (it was cut off)" : "");
}

}  // namespace

const char* DtypeName(DataType type) {
  switch (type) {
    case DataType::kU8:
      return "U8";
    case DataType::kI32:
      return "I32";
    case DataType::kI64:
      return "I64";
    case DataType::kF32:
      return "F32";
    case DataType::kF64:
      return "F64";
  }
  return "";
}

Result<Layout> Plan(std::vector<TensorEntry> tensors, std::string* header) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return ElementBytes(a.dtype) > ElementBytes(b.dtype);
  });
  Layout layout;
  json object = {{kMetadata, {{"producer", "muster"}}}};
  for (TensorEntry& tensor : tensors) {
    const std::optional<uint64_t> bytes = TensorBytes(tensor);
    if (ElementBytes(tensor.dtype) == 0 || !bytes.has_value()) {
      return Status(StatusCode::kInvalidArgument,
                    "tensor " + Quoted(tensor.name) + " has an impossible dtype or shape");
    }
    // An empty object's first key is the metadata's, so that its name is refused here as well.
    if (tensor.name.empty() || object.contains(tensor.name)) {
      return Status(StatusCode::kInvalidArgument,
                    "tensor names must be unique, not empty and not \"__metadata__\": " +
                        Quoted(tensor.name));
    }
    tensor.begin = layout.data_bytes;
    tensor.end = layout.data_bytes += *bytes;
    object[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text;
  try {
    text = object.dump();
  } catch (const json::exception&) {
    return Status(StatusCode::kInvalidArgument, "a tensor's name isn't UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    return Status(StatusCode::kInvalidArgument, "too many tensors: the safetensors header has " +
                                                    std::to_string(text.size()) + " bytes of " +
                                                    std::to_string(kMaxHeaderBytes));
  }
  header->clear();
  for (size_t i = 0; i < kSizeWord; ++i) {
    header->push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  }
  *header += text;
  layout.data_offset = header->size();
  layout.tensors = std::move(tensors);
  return layout;
}

Result<Layout> Parse(std::span<const std::byte> file, const std::string& path) {
  const auto damaged = [&](const std::string& reason) {
    return Status(StatusCode::kDataLoss, path + " isn't a sound safetensors file: " + reason);
  };
  if (file.size() < kSizeWord)
    return damaged("it has only " + std::to_string(file.size()) + " bytes");
  uint64_t size = 0;
  for (size_t i = 0; i < kSizeWord; ++i) size |= static_cast<uint64_t>(file[i]) << (8 * i);
  if (size > kMaxHeaderBytes || size > file.size() - kSizeWord) {
    return damaged("its header is said to have " + std::to_string(size) + " bytes");
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kSizeWord, size);
  if (!text.starts_with('{')) return damaged("its header doesn't begin with '{'");
  std::string repeated;
  const json object = ParseObject(text, &repeated);
  if (!object.is_object()) return damaged("its header isn't a JSON object");
  if (!repeated.empty()) return damaged("its header says " + repeated + " twice");

  Layout layout{
      .tensors = {}, .data_offset = kSizeWord + size, .data_bytes = file.size() - kSizeWord - size};
  for (const auto& [name, value] : object.items()) {
    if (name == kMetadata) {
      if (!IsStringMap(value)) return damaged("its __metadata__ isn't a map of texts");
      continue;
    }
    TensorEntry tensor{.name = name, .dtype = "", .shape = {}};
    const std::string reason = ReadTensor(value, &tensor);
    if (!reason.empty()) return damaged("tensor " + Quoted(name) + ": " + reason);
    layout.tensors.push_back(std::move(tensor));
  }
  std::sort(layout.tensors.begin(), layout.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  const std::string reason = CheckCover(layout.tensors, layout.data_bytes);
  if (!reason.empty()) return damaged(reason);
  return layout;
}

}  // namespace muster::safetensors
