#include "launcher/ssh/host_slots.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "launcher/flag_value.h"
#include "launcher/host_list.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// As --nproc-per-node.
constexpr WholeRange kSlots{1, 4096, "1 to 4096 workers on a host"};
// Of mpirun's; 0 is none there.
constexpr WholeRange kLimit{0, 1'000'000, "a whole number"};
constexpr char kAllowedHost[] = "HOST or HOST:N with N workers there, an IPv6 address in brackets";

// At commas outside of brackets.
std::vector<std::string_view> Entries(std::string_view text) {
  std::vector<std::string_view> entries;
  size_t begin = 0;
  bool is_inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') is_inside = true;
    if (text[i] == ']') is_inside = false;
    if (text[i] != ',' || is_inside) continue;
    entries.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  entries.push_back(text.substr(begin));
  return entries;
}

// One that begins with a dash would be an option of ssh's.
bool IsName(std::string_view name) {
  std::string_view host = name.substr(name.rfind('@') + 1);
  return !name.empty() && name.front() != '-' && name.front() != '@' && !host.empty() &&
         host.front() != '-' &&
         name.find_first_of(" \t\r\n\"'\\;&|<>$`=*?!(){}") == std::string_view::npos;
}

// "alice@gpu[01-02]" and the like, without a number behind.
std::optional<std::vector<std::string>> Names(std::string_view text) {
  // The last one, as ssh has it: a user's name may hold one.
  const size_t at = text.rfind('@');
  const std::string user(at == std::string_view::npos ? "" : text.substr(0, at + 1));
  std::string_view host = text.substr(user.size());
  const bool is_address =
      host.starts_with('[') && host.ends_with(']') && host.find(':') != std::string_view::npos;
  std::vector<std::string> names;
  if (is_address) {
    names.emplace_back(host.substr(1, host.size() - 2));
  } else {
    auto expanded = ExpandHostList(host);
    if (!expanded.ok()) return std::nullopt;
    names = *std::move(expanded);
  }
  for (std::string& name : names) {
    if (!is_address && name.find(':') != std::string::npos) return std::nullopt;
    name = user + name;
    if (!IsName(name)) return std::nullopt;
  }
  return names;
}

class List {
 public:
  void Add(const std::string& name, int slots) {
    auto it = std::ranges::find(hosts_, name, &HostSlots::name);
    if (it == hosts_.end()) {
      hosts_.push_back({.name = name, .slots = slots});
      return;
    }
    it->slots = std::max(it->slots, 1) + std::max(slots, 1);
  }
  std::vector<HostSlots> Take() { return std::move(hosts_); }

 private:
  std::vector<HostSlots> hosts_;
};

// Where the colon before the number is; npos: there is none.
size_t NumberAt(std::string_view entry) {
  const size_t colon = entry.rfind(':');
  const bool is_in_brackets =
      colon != std::string_view::npos && entry.find(']', colon) != std::string_view::npos;
  return is_in_brackets ? std::string_view::npos : colon;
}

// "NAME" or "NAME:N".
absl::Status AddEntry(std::string_view who, std::string_view entry, List& list) {
  std::string_view name = entry;
  int slots = 0;
  const size_t colon = NumberAt(entry);
  if (colon != std::string_view::npos) {
    absl::StatusOr<int> number = WholeNumber(who, entry.substr(colon + 1), kSlots);
    if (!number.ok()) return BadValue(who, entry, kAllowedHost);
    slots = *number;
    name = entry.substr(0, colon);
  }
  auto names = Names(name);
  if (!names) return BadValue(who, entry, kAllowedHost);
  for (const std::string& each : *names) list.Add(each, slots);
  return absl::OkStatus();
}

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = Strip(line)).empty()) {
    const size_t end = line.find_first_of(" \t");
    words.push_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end);
  }
  return words;
}

// "a slots = 2" as "a slots=2", which is what mpirun makes of it.
std::string WithoutBlanksAtEquals(std::string_view line) {
  std::string joined;
  for (std::string_view word : WordsOf(line)) {
    const bool goes_on = joined.ends_with('=') || word.front() == '=';
    joined += Cat(joined.empty() || goes_on ? "" : " ", word);
  }
  return joined;
}

// One that stands for itself, with or without a zone.
bool IsBareIpv6(std::string_view word) {
  in6_addr address;
  return inet_pton(AF_INET6, std::string(word.substr(0, word.find('%'))).c_str(), &address) == 1;
}

constexpr char kAllowedOnALine[] =
    "HOST, HOST:N or HOST slots=N with 1 to 4096 workers there, as in \"gpu01 slots=8\"";

// `line` without its comment; `where` is "FILE:3".
absl::Status AddLine(const std::string& where, std::string_view line, List& list,
                     std::string& idle) {
  const std::string joined = WithoutBlanksAtEquals(line);
  std::vector<std::string_view> words = WordsOf(joined);
  if (words.empty()) return absl::OkStatus();
  const std::string_view host = words.front();
  const size_t at = host.rfind('@');
  std::string user(at == std::string_view::npos ? "" : host.substr(0, at + 1));
  std::string entry(host.substr(user.size()));
  std::string_view slots;
  for (std::string_view word : std::span(words).subspan(1)) {
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
    const bool is_limit = key == "max_slots" || key == "max-slots";
    if (is_limit && WholeNumber(where, value, kLimit).ok()) {
      if (idle.empty()) idle = Cat(where, ": ", word);
    } else if (key == "user" && !value.empty() && user.empty()) {
      user = Cat(value, "@");
    } else if (key == "slots" && slots.empty() && WholeNumber(where, value, kSlots).ok()) {
      slots = word;
    } else {
      return BadValue(where, word, kAllowedOnALine);
    }
  }
  if (IsBareIpv6(entry)) entry = Cat("[", entry, "]");
  if (!slots.empty()) {
    if (NumberAt(entry) != std::string::npos) {
      return BadValue(where, slots, Cat("one number of workers for ", host));
    }
    entry += Cat(":", slots.substr(slots.find('=') + 1));
  }
  if (!AddEntry(where, user + entry, list).ok()) return BadValue(where, host, kAllowedOnALine);
  return absl::OkStatus();
}

}  // namespace

std::string HostSlots::host() const { return name.substr(name.rfind('@') + 1); }

absl::StatusOr<std::vector<HostSlots>> ParseHosts(std::string_view who, std::string_view text) {
  List list;
  for (std::string_view entry : Entries(text)) {
    if (absl::Status added = AddEntry(who, Strip(entry), list); !added.ok()) return added;
  }
  return list.Take();
}

absl::StatusOr<HostFile> ParseHostFile(std::string_view path, std::string_view text) {
  HostFile file;
  List list;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    absl::Status added =
        AddLine(Cat(path, ":", number), line.substr(0, line.find('#')), list, file.idle);
    if (!added.ok()) return added;
  }
  file.hosts = list.Take();
  if (file.hosts.empty()) {
    return absl::InvalidArgumentError(
        Cat("--hostfile=", path, " names no host; write one a line, as \"gpu01 slots=8\""));
  }
  return file;
}

absl::StatusOr<std::vector<HostSlots>> FillHosts(const std::vector<HostSlots>& hosts, int workers,
                                                 int slots_unsaid) {
  std::vector<HostSlots> filled;
  int left = workers;
  for (const HostSlots& host : hosts) {
    if (left == 0) break;
    const int slots = std::min(left, host.slots == 0 ? slots_unsaid : host.slots);
    filled.push_back({.name = host.name, .slots = slots});
    left -= slots;
  }
  if (left == 0) return filled;
  return absl::InvalidArgumentError(
      Cat("-np ", workers, " asks for more workers than the hosts have places (", workers - left,
          "); raise the numbers behind the hosts, as in --hosts=a:8, or name more of them"));
}

}  // namespace muster::launcher
