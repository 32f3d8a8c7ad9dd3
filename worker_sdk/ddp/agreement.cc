#include "worker_sdk/ddp/agreement.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace muster {
namespace {

// Of each rank's sentence; the rest is cut.
constexpr size_t kSentenceBytes = 512;

// What ranks compare first: length and hash of the description, and the code of the objection.
constexpr size_t kSummaryWords = 3;
struct Summary {
  int64_t bytes = 0;
  int64_t hash = 0;
  int64_t code = 0;

  friend bool operator==(const Summary&, const Summary&) = default;
};

// FNV-1a, 64 bits: against mistakes, not against enemies.
int64_t HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return static_cast<int64_t>(hash);
}

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// How `lines` differ from those of rank 0.
std::string Difference(int rank, const std::vector<std::string>& lines,
                       const std::vector<std::string>& reference) {
  std::string who = "the ranks have different parameters: rank " + std::to_string(rank) + " has ";
  for (size_t i = 0; i < std::min(lines.size(), reference.size()); ++i) {
    if (lines[i] != reference[i]) {
      return who + lines[i] + " as number " + std::to_string(i) + ", rank 0 has " + reference[i];
    }
  }
  return who + std::to_string(lines.size()) + " parameters, rank 0 has " +
         std::to_string(reference.size());
}

}  // namespace

Status CheckAgreement(ProcessGroup& group, const std::vector<std::string>& lines,
                      const Status& own) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  std::array<int64_t, kSummaryWords> mine = {static_cast<int64_t>(text.size()), HashOf(text),
                                             static_cast<int64_t>(own.code())};
  auto ranks = static_cast<size_t>(group.world_size());
  std::vector<int64_t> words(ranks * kSummaryWords);
  Status status = group.AllGather(View(mine), MutableView(words)).Wait();
  if (!status.ok()) return status;
  std::vector<Summary> all;
  for (size_t i = 0; i < words.size(); i += kSummaryWords) {
    all.push_back({words[i], words[i + 1], words[i + 2]});
  }
  if (std::ranges::all_of(all, [&](const Summary& s) { return s == all[0] && s.code == 0; })) {
    return {};
  }

  // Something is wrong; all ranks know it and take this way together.
  std::string reference = text;
  reference.resize(static_cast<size_t>(all[0].bytes));
  Buffer reference_bytes{reference.data(), reference.size(), DataType::kU8};
  status = group.Broadcast(reference_bytes, 0).Wait();
  if (!status.ok()) return status;
  std::string sentence = own.message();
  if (own.ok() && text != reference) {
    sentence = Difference(group.rank(), lines, SplitLines(reference));
  }
  sentence.resize(kSentenceBytes);
  std::string sentences(ranks * kSentenceBytes, '\0');
  status = group
               .AllGather({sentence.data(), sentence.size(), DataType::kU8},
                          {sentences.data(), sentences.size(), DataType::kU8})
               .Wait();
  if (!status.ok()) return status;
  auto sentence_of = [&](size_t rank) {
    const std::string padded = sentences.substr(rank * kSentenceBytes, kSentenceBytes);
    return padded.substr(0, padded.find('\0'));
  };
  for (size_t r = 0; r < ranks; ++r) {
    if (all[r].code != 0) {
      return {static_cast<StatusCode>(all[r].code),
              "rank " + std::to_string(r) + ": " + sentence_of(r)};
    }
  }
  for (size_t r = 0; r < ranks; ++r) {
    if (!(all[r] == all[0])) return {StatusCode::kFailedPrecondition, sentence_of(r)};
  }
  return {};
}

}  // namespace muster
