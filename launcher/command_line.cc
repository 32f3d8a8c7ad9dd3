#include "launcher/command_line.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// CLI11 keeps the table and lays out the help. Where a command line ends it can't tell: it sorts
// words into known and unknown ones, and those after the program must never be looked at.
std::unique_ptr<CLI::App> Register(std::span<const FlagSpec> flags) {
  auto app = std::make_unique<CLI::App>();
  const bool marks_ours = std::ranges::any_of(
      flags, [](const FlagSpec& flag) { return flag.origin == Origin::kTorchrun; });
  app->set_help_flag();
  for (const FlagSpec& flag : flags) {
    std::string names = Cat("--", flag.name);
    if (flag.letter != 0) names = Cat("-", std::string(1, flag.letter), ",", names);
    const bool is_marked = marks_ours && flag.origin != Origin::kTorchrun;
    const std::string help = Cat(is_marked ? "* " : "", flag.help);
    CLI::Option* option = app->add_option(names, help);
    option->group(std::string(flag.group));
    option->option_text(std::string(flag.value_name));
  }
  return app;
}

const FlagSpec* FindByName(std::span<const FlagSpec> flags, std::string_view name) {
  auto it = std::ranges::find(flags, name, &FlagSpec::name);
  return it == flags.end() ? nullptr : &*it;
}

const FlagSpec* FindByLetter(std::span<const FlagSpec> flags, char letter) {
  auto it = std::ranges::find(flags, letter, &FlagSpec::letter);
  return letter == 0 || it == flags.end() ? nullptr : &*it;
}

// By a name of mpirun's.
const FlagSpec* FindAsMpirun(std::span<const FlagSpec> flags, std::string_view name) {
  for (const FlagSpec& flag : flags) {
    if (flag.origin != Origin::kMpirun) continue;
    if (flag.name == name) return &flag;
    const std::vector<std::string_view> also = Split(flag.also, ',');
    if (!name.empty() && std::ranges::find(also, name) != also.end()) return &flag;
  }
  return nullptr;
}

// All that a shortened name may stand for.
std::vector<const FlagSpec*> FindByStart(std::span<const FlagSpec> flags, std::string_view start) {
  std::vector<const FlagSpec*> found;
  for (const FlagSpec& flag : flags) {
    if (flag.origin == Origin::kTorchrun && flag.name.starts_with(start)) found.push_back(&flag);
  }
  return found;
}

absl::Status Ambiguous(std::string_view word, const std::vector<const FlagSpec*>& meant) {
  std::string names;
  for (const FlagSpec* flag : meant) names += Cat(names.empty() ? "--" : ", --", flag->name);
  return absl::InvalidArgumentError(
      Cat("option ", word, " is too short, it may be ", names, "; write one of them"));
}

// mpirun takes most of its options with one dash as well as with two.
const ForeignFlag* FindForeign(std::span<const ForeignFlag> foreign, std::string_view name) {
  for (const ForeignFlag& flag : foreign) {
    const std::vector<std::string_view> names = Split(flag.names, ',');
    if (std::ranges::find(names, name) != names.end()) return &flag;
  }
  return nullptr;
}

absl::Status Foreign(std::string_view word, const ForeignFlag& flag) {
  return absl::InvalidArgumentError(Cat("option ", word, " is mpirun's; ", flag.instead));
}

absl::Status Unknown(std::string_view word, std::string_view name,
                     std::span<const FlagSpec> flags) {
  std::vector<std::string_view> names;
  names.reserve(flags.size());
  for (const FlagSpec& flag : flags) names.push_back(flag.name);
  std::string_view nearest = NearestName(name, names);
  bool is_shortened = name.size() > 1 && nearest.starts_with(name);
  return absl::InvalidArgumentError(
      Cat("unknown option ", word, "; did you mean --", nearest, "? (",
          is_shortened ? "Options can't be shortened." : "`--help` lists all options.", ")"));
}

// One word that begins with a dash, taken apart.
struct Word {
  const FlagSpec* flag = nullptr;
  // As it was written, for messages.
  std::string spelling;
  std::optional<std::string> value;
};

void Note(const FlagSpec& flag, std::string value, CommandLine& line) {
  line.in_order.emplace_back(flag.name, value);
  line.values[std::string(flag.name)] = std::move(value);
}

// `-x`, `-xVALUE`, `-x=VALUE`, `-xyVALUE`; letters before the last one are put into `line`.
absl::StatusOr<Word> TakeLettersApart(const std::string& text, std::span<const FlagSpec> flags,
                                      CommandLine& line) {
  Word word;
  for (size_t at = 1; at < text.size(); ++at) {
    if (word.flag != nullptr) Note(*word.flag, "1", line);
    word.spelling = Cat("-", text.substr(at, 1));
    word.flag = FindByLetter(flags, text[at]);
    if (word.flag == nullptr) return Unknown(text, text.substr(1), flags);
    if (!word.flag->takes_value()) continue;
    if (at + 1 < text.size()) word.value = text.substr(text[at + 1] == '=' ? at + 2 : at + 1);
    break;
  }
  return word;
}

absl::StatusOr<Word> TakeApart(const std::string& text, std::span<const FlagSpec> flags,
                               std::span<const ForeignFlag> foreign, CommandLine& line) {
  const bool has_one_dash = !text.starts_with("--");
  Word word;
  size_t equals = text.find('=');
  word.spelling = text.substr(0, equals);
  if (equals != std::string::npos) word.value = text.substr(equals + 1);
  std::string name = word.spelling.substr(has_one_dash ? 1 : 2);
  std::ranges::replace(name, '_', '-');
  const ForeignFlag* elsewhere = FindForeign(foreign, name);
  // A letter of ours is no option of theirs, whatever stands behind it.
  if (has_one_dash && elsewhere != nullptr) return Foreign(word.spelling, *elsewhere);
  word.flag = has_one_dash ? FindAsMpirun(flags, name) : FindByName(flags, name);
  if (word.flag != nullptr) return word;
  if (has_one_dash) return TakeLettersApart(text, flags, line);
  std::vector<const FlagSpec*> meant = FindByStart(flags, name);
  if (meant.empty()) word.flag = FindAsMpirun(flags, name);
  if (word.flag != nullptr) return word;
  if (meant.empty() && elsewhere != nullptr) return Foreign(word.spelling, *elsewhere);
  if (meant.empty()) return Unknown(word.spelling, name, flags);
  if (meant.size() > 1) return Ambiguous(word.spelling, meant);
  word.flag = meant.front();
  return word;
}

enum class AtAWord { kStop, kGoOn };

absl::StatusOr<CommandLine> Parse(std::span<const FlagSpec> flags,
                                  std::span<const ForeignFlag> foreign,
                                  std::span<const std::string> words, AtAWord at_a_word) {
  CommandLine line;
  size_t i = 0;
  while (i < words.size()) {
    const std::string& text = words[i];
    if (text == "--") {
      ++i;
      break;
    }
    if (text.size() < 2 || text[0] != '-') {
      if (at_a_word == AtAWord::kStop) break;
      line.rest.push_back(text);
      ++i;
      continue;
    }
    ++i;
    absl::StatusOr<Word> word = TakeApart(text, flags, foreign, line);
    if (!word.ok()) return word.status();
    if (!word->flag->takes_value()) {
      if (word->value.has_value()) {
        return absl::InvalidArgumentError(
            Cat(word->spelling, " takes no value, but was given \"", *word->value, "\""));
      }
      word->value = "1";
    } else if (!word->value.has_value()) {
      if (i == words.size()) {
        return absl::InvalidArgumentError(
            Cat(word->spelling, " needs a value: ", word->flag->value_name));
      }
      word->value = words[i++];
    }
    Note(*word->flag, *std::move(word->value), line);
  }
  line.rest.insert(line.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return line;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(std::span<const FlagSpec> flags,
                                             std::span<const std::string> words,
                                             std::span<const ForeignFlag> foreign) {
  return Parse(flags, foreign, words, AtAWord::kStop);
}

absl::StatusOr<CommandLine> ParseWordsAndFlags(std::span<const FlagSpec> flags,
                                               std::span<const std::string> words) {
  return Parse(flags, {}, words, AtAWord::kGoOn);
}

std::string HelpPage(std::string_view usage, std::span<const FlagSpec> flags) {
  std::unique_ptr<CLI::App> app = Register(flags);
  app->get_formatter()->column_width(34);
  std::string page = app->help();
  // CLI11 opens with a usage line of its own, which can't say what follows the flags.
  size_t first_group = page.find("\n\n");
  page = first_group == std::string::npos ? "" : page.substr(first_group + 1);
  // Some of its versions end each group with a blank line and begin the next one with another.
  for (size_t at = 0; (at = page.find("\n\n\n", at)) != std::string::npos;) page.erase(at, 1);
  while (page.ends_with("\n\n")) page.pop_back();
  return Cat(usage, page);
}

}  // namespace muster::launcher
