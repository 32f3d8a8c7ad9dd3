#include "launcher/ssh/ssh_job.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/signal_name.h"
#include "launcher/exit_codes.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Of one stream in one turn, so that no host keeps us from signals and from the others.
constexpr size_t kReadBytes = 256 << 10;
// Once a process has ended its pipes hold no more than this, whoever else may still write there.
constexpr size_t kMostLeft = 4 << 20;
// While more than this waits for the console, hosts aren't read from: their agents then do what
// they do with a console that is slow.
constexpr size_t kMostBehind = 1 << 20;
// What a shell's profile or a banner says before muster there speaks.
constexpr size_t kMostBeforeGreeting = 64 << 10;
// All hosts hear the verdict at the same moment; what is left to them is to write files and say it.
constexpr seconds kEndsTogether{10};
// From the last byte of a host on which the job has ended to the end of its connection.
constexpr seconds kLingers{5};
// Beyond the time that workers have to end.
constexpr seconds kBeyondShutdown{15};
constexpr seconds kLastFlush{2};
constexpr milliseconds kLongestPoll{1000};

// What to do about a command that can't be started here.
std::string RemedyFor(int error, const SshHost& host) {
  if (error == EMFILE || error == ENFILE) return "; raise `ulimit -n`, or name fewer hosts";
  if (error == EAGAIN || error == ENOMEM) {
    return "; raise `ulimit -u` or the container's limits, or name fewer hosts";
  }
  return host.is_local ? "" : "; install ssh here, or name it with --ssh-command";
}

std::string LastLine(std::string_view text) {
  std::string_view last;
  for (std::string_view line : Split(text, '\n')) {
    if (!Strip(line).empty()) last = Strip(line);
  }
  return std::string(last);
}

}  // namespace

struct SshJob::Host {
  const SshHost& place;
  std::unique_ptr<PipedProcess> process;
  RecordReader out;
  RecordReader err;
  std::optional<Greeting> greeting;
  // Before the greeting.
  std::string early_out;
  std::string early_err;
  // Shown at the end.
  std::string verdict;
  // Before anybody asked it to.
  bool ended_by_itself = false;
  // When the last bytes came.
  Instant heard_at;
  HostEnd end;
  bool has_ended = false;
};

SshJob::SshJob(const RunOptions& options, const SshFacts& facts, const SshPlan& plan)
    : options_(options),
      facts_(facts),
      plan_(plan),
      outcome_(static_cast<int>(plan.hosts.size()), plan.min_hosts),
      out_(STDOUT_FILENO),
      own_err_(STDERR_FILENO),
      err_(agent::ConsoleSink::LeadToSamePlace(STDOUT_FILENO, STDERR_FILENO) ? &out_ : &own_err_) {
  const bool whole_lines = plan.hosts.size() > 1;
  for (const SshHost& host : plan.hosts) {
    hosts_.push_back(std::unique_ptr<Host>(new Host{.place = host,
                                                    .process = nullptr,
                                                    .out = RecordReader(plan.mark, whole_lines),
                                                    .err = RecordReader(plan.mark, whole_lines),
                                                    .greeting = std::nullopt,
                                                    .early_out = "",
                                                    .early_err = "",
                                                    .verdict = "",
                                                    .heard_at = {},
                                                    .end = {}}));
  }
  // Where it was ignored when we were started the kernel would reap children by itself, and never
  // tell.
  std::signal(SIGCHLD, SIG_DFL);
  sigemptyset(&taken_);
  sigaddset(&taken_, SIGCHLD);
  std::vector<int> numbers = options.stop_signals;
  numbers.insert(numbers.end(), {SIGUSR1, SIGUSR2});
  for (int number : numbers) {
    struct sigaction current;
    // What was ignored when we were started stays ignored.
    const bool is_known = sigaction(number, nullptr, &current) == 0;
    if (is_known && current.sa_handler != SIG_IGN) sigaddset(&taken_, number);
  }
  std::signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &taken_, nullptr);
  signal_fd_ = signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK);
  ready_by_ = Now() + options.join_timeout;
}

SshJob::~SshJob() { close(signal_fd_); }

Instant SshJob::Now() const { return SystemClock().Now(); }

void SshJob::Show(agent::ConsoleSink& sink, const std::string& text) { sink.Add(Now(), text); }

void SshJob::Say(const std::string& sentence) {
  err_->AddAlways(Now(), Cat("muster: ", sentence, "\n"));
}

int SshJob::Run() {
  if (StartAll()) {
    while (outcome_.running() > 0 && stop_count_ < 3) Step();
    if (outcome_.running() > 0 && plans_are_sent_) {
      Say(Cat("not waiting for ", outcome_.running(), " of ", hosts_.size(),
              " hosts; what runs there ends when it sees that the connection is closed"));
    }
  }
  const int exit_code = outcome_.ExitCode();
  ShowVerdict(exit_code);
  for (auto& host : hosts_) {
    if (host->process) host->process->Kill(SIGKILL);
  }
  const Instant end = Now() + kLastFlush;
  while (Now() < end && out_.backlog_size() + own_err_.backlog_size() > 0) {
    pollfd fds[] = {{.fd = out_.poll_fd(), .events = POLLOUT, .revents = 0},
                    {.fd = own_err_.poll_fd(), .events = POLLOUT, .revents = 0}};
    poll(fds, 2, 100);
    out_.Flush(Now());
    own_err_.Flush(Now());
  }
  SayWhatIsNotShown();
  err_->Flush(Now());
  return exit_code;
}

void SshJob::ShowVerdict(int exit_code) {
  for (auto& host : hosts_) {
    if (host->verdict.empty() || host->end.job_code != exit_code) continue;
    // We have ended the job ourselves: because of this host, or it was ended by that.
    if (outcome_.is_own_stop() && !host->ended_by_itself) continue;
    ShowVerdictOf(*host);
  }
}

void SshJob::ShowVerdictOf(Host& host) {
  if (host.verdict.empty() || !shown_verdicts_.insert(host.verdict).second) return;
  err_->AddAlways(Now(), host.verdict + "\n");
}

void SshJob::SayWhatIsNotShown() {
  for (const auto& [sink, name] : {std::pair{&own_err_, "stderr"}, {&out_, "stdout"}}) {
    if (loss_is_said_ || sink->lost_bytes() == 0 || sink->backlog_size() > 0) continue;
    loss_is_said_ = true;
    Say(Cat("some output to ", name, " is not shown: ", sink->why_lost()));
  }
}

bool SshJob::StartAll() {
  for (auto& host : hosts_) {
    const SshHost& place = host->place;
    host->process = std::make_unique<PipedProcess>(place.command, !place.is_local);
    const int error = host->process->error();
    if (error == 0) continue;
    Say(Cat("host ", place.name, ": ", place.command.front(),
            " can't be started: ", std::strerror(error), RemedyFor(error, place)));
    outcome_.OnOwnStop(error == ENOENT ? 127 : kExitOsError);
    return false;
  }
  return true;
}

void SshJob::Step() {
  std::vector<pollfd> fds = {
      {.fd = signal_fd_, .events = POLLIN, .revents = 0},
      {.fd = out_.poll_fd(), .events = POLLOUT, .revents = 0},
      {.fd = own_err_.poll_fd(), .events = POLLOUT, .revents = 0},
  };
  const bool is_behind = IsBehind();
  for (auto& host : hosts_) {
    PipedProcess& process = *host->process;
    fds.push_back({.fd = process.input_fd(), .events = POLLOUT, .revents = 0});
    if (is_behind || host->has_ended) continue;
    fds.push_back({.fd = process.output_fd(), .events = POLLIN, .revents = 0});
    fds.push_back({.fd = process.errors_fd(), .events = POLLIN, .revents = 0});
  }
  poll(fds.data(), fds.size(), static_cast<int>(kLongestPoll.count()));
  TakeSignals();
  out_.Flush(Now());
  own_err_.Flush(Now());
  SayWhatIsNotShown();
  ++first_read_;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = *hosts_[(first_read_ + i) % hosts_.size()];
    host.process->Flush();
    if (host.has_ended) continue;
    // Asked first: what it wrote before its end is in the pipes then.
    const std::optional<int> status = host.process->Status();
    if (status.has_value() || !IsBehind()) ReadFrom(host, status.has_value());
    if (status.has_value()) OnEnded(host, *status);
  }
  SendPlansOnceAllAreReady();
  CheckDeadlines();
}

void SshJob::TakeSignals() {
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) continue;
    if (std::ranges::find(options_.stop_signals, number) != options_.stop_signals.end()) {
      OnStopSignal(number);
    }
    if (!plans_are_sent_) continue;
    for (auto& host : hosts_) host->process->Send(EncodeSignal(number));
  }
}

void SshJob::OnStopSignal(int number) {
  ++stop_count_;
  const bool is_first = !outcome_.is_stopping();
  outcome_.OnSignal(number);
  if (plans_are_sent_) {
    // The agents there don't know how often a signal may come.
    if (is_first) {
      Say(Cat(SignalName(number), " is passed on to ", outcome_.running(),
              outcome_.running() == 1 ? " host" : " hosts",
              "; a second signal kills the workers there, a third one ends the wait for them"));
    }
    return;
  }
  // Nothing runs anywhere.
  if (is_first) Say(Cat("stopped by ", SignalName(number), " before the job had begun"));
  for (auto& host : hosts_) {
    host->process->CloseInput();
    host->process->Kill(SIGTERM);
  }
}

bool SshJob::IsBehind() const {
  return out_.backlog_size() + own_err_.backlog_size() > kMostBehind;
}

void SshJob::ReadFrom(Host& host, bool all) {
  const size_t most = all ? kMostLeft : kReadBytes;
  // Errors first: notices come before the end that stdout tells.
  const std::string errors = host.process->ReadErrors(most);
  TakeErrors(host, errors);
  const std::string output = host.process->ReadOutput(most);
  if (!errors.empty() || !output.empty()) host.heard_at = Now();
  TakeGreeting(host, output);
}

void SshJob::TakeGreeting(Host& host, std::string bytes) {
  while (!host.greeting.has_value()) {
    host.early_out += bytes;
    bytes.clear();
    const size_t end = host.early_out.find('\n');
    if (end == std::string::npos) {
      if (host.early_out.size() > kMostBeforeGreeting) host.early_out.clear();
      return;
    }
    host.greeting = ParseGreeting(std::string_view(host.early_out).substr(0, end));
    host.early_out.erase(0, end + 1);
    if (!host.greeting.has_value()) continue;
    host.end.has_greeted = true;
    if (auto failure = CheckVersion(host.place, plan_, host.greeting->version)) {
      Say(failure->text);
      StopAll(failure->exit_code);
    }
    std::string early = std::exchange(host.early_err, "");
    TakeErrors(host, early);
    bytes = std::exchange(host.early_out, "");
  }
  std::string text;
  host.out.Feed(bytes, text, [&](const Record& record) { OnRecord(host, record); });
  Show(out_, text);
}

void SshJob::TakeErrors(Host& host, const std::string& bytes) {
  if (!host.greeting.has_value()) {
    host.early_err += bytes;
    if (host.early_err.size() > kMostBeforeGreeting) {
      host.early_err.erase(0, host.early_err.size() - kMostBeforeGreeting);
    }
    return;
  }
  std::string text;
  host.err.Feed(bytes, text, [&](const Record& record) { OnRecord(host, record); });
  Show(*err_, text);
}

void SshJob::SayOfHost(const Host& host, const std::string& text) {
  if (outcome_.is_own_stop()) return;
  // Here it has to be said which.
  const bool is_of_one = text.find("this node") != std::string::npos;
  const std::string sentence = is_of_one ? Cat("host ", host.place.name, ": ", text) : text;
  if (said_.IsNews(host.place.name, sentence)) Say(sentence);
}

void SshJob::OnRecord(Host& host, const Record& record) {
  switch (record.kind) {
    case RecordKind::kNotice:
      SayOfHost(host, record.text);
      break;
    case RecordKind::kLine: {
      constexpr std::string_view kOurs = "muster: ";
      SayOfHost(host,
                record.text.starts_with(kOurs) ? record.text.substr(kOurs.size()) : record.text);
      break;
    }
    case RecordKind::kProblem:
      host.end.has_problem = true;
      if (!outcome_.is_own_stop() && said_.IsNews(host.place.name, record.text)) {
        Say(Cat("host ", host.place.name, ": ", record.text));
      }
      break;
    case RecordKind::kAlive:
      break;
    case RecordKind::kVerdict:
      host.verdict = record.text;
      break;
    case RecordKind::kEnded: {
      int code = kExitUnavailable;
      std::from_chars(record.text.data(), record.text.data() + record.text.size(), code);
      host.end.job_code = code;
      // Nothing more is to be said to it, and ssh need not wait for what holds its streams open.
      host.process->CloseInput();
      break;
    }
  }
}

void SshJob::SendPlansOnceAllAreReady() {
  const bool are_ready = std::ranges::all_of(
      hosts_, [](const auto& host) { return host->greeting.has_value() && !host->has_ended; });
  if (plans_are_sent_ || !are_ready || outcome_.is_stopping()) return;
  plans_are_sent_ = true;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i]->process->Send(
        EncodeRemotePlan(PlanForHost(options_, facts_, plan_, i, hosts_.front()->greeting->port)));
  }
}

void SshJob::OnEnded(Host& host, int status) {
  host.has_ended = true;
  host.ended_by_itself = !outcome_.is_stopping();
  host.end.status = status;
  host.end.words = LastLine(host.early_err);
  std::string rest;
  host.err.End(rest);
  Show(*err_, rest);
  rest.clear();
  host.out.End(rest);
  Show(out_, rest);
  std::optional<HostFailure> failure;
  if (!host.end.job_code.has_value()) {
    failure = ExplainEnd(host.place, plan_, options_.ssh.command, host.end);
  }
  const bool says_so = failure.has_value() && host.ended_by_itself;
  const Others others = outcome_.OnEnd(host.end, failure);
  if (says_so) Say(failure->text);
  // A host that was refused is alone with that, and its sentence is of use while the others end.
  const bool is_refused = host.ended_by_itself && host.end.job_code == kExitDisagree;
  if (is_refused) ShowVerdictOf(host);
  const bool is_missed = says_so || is_refused || (host.ended_by_itself && host.end.has_problem);
  if (is_missed && plans_are_sent_ && others == Others::kGoOn && outcome_.running() > 0) {
    Say(Cat("the job goes on with ", outcome_.running(), " of ", hosts_.size(), " hosts"));
  }
  // Before the job began nothing is lost by ending it, and the host would be missed.
  if (others == Others::kMustEnd || (says_so && !plans_are_sent_)) {
    StopAll(failure.has_value() ? failure->exit_code
                                : host.end.job_code.value_or(kExitUnavailable));
  } else if (others == Others::kShouldEnd && end_expected_by_.IsNever()) {
    end_expected_by_ = Now() + kEndsTogether;
  }
}

void SshJob::StopAll(int exit_code) {
  if (outcome_.is_stopping()) return;
  outcome_.OnOwnStop(exit_code);
  ended_by_ = Now() + options_.shutdown_timeout + kBeyondShutdown;
  for (auto& host : hosts_) {
    if (host->has_ended) continue;
    if (plans_are_sent_) {
      host->process->Send(EncodeSignal(SIGTERM));
    } else {
      host->process->CloseInput();
      host->process->Kill(SIGTERM);
    }
  }
}

void SshJob::CheckDeadlines() {
  const Instant now = Now();
  if (!plans_are_sent_ && !outcome_.is_stopping() && now >= ready_by_) {
    for (auto& host : hosts_) {
      if (host->greeting.has_value()) continue;
      Say(Cat("host ", host->place.name, ": muster there isn't ready after ",
              std::chrono::ceil<seconds>(options_.join_timeout).count(),
              " s (join_timeout); look whether `", options_.ssh.command, " ", host->place.name,
              " true` ends"));
    }
    StopAll(kExitUnavailable);
  }
  if (now >= end_expected_by_ && !outcome_.is_stopping()) {
    // The code of the host that has ended stays the job's.
    StopAll(outcome_.ExitCode());
  }
  EndLingering();
  if (now < ended_by_) return;
  for (auto& host : hosts_) {
    if (host->has_ended) continue;
    Say(Cat("host ", host->place.name, " doesn't end; it is left alone, and what runs there ends ",
            "when it sees that the connection is closed"));
    host->process->Kill(SIGKILL);
  }
  ended_by_ = Instant::Never();
}

void SshJob::EndLingering() {
  if (IsBehind()) return;
  const Instant now = Now();
  for (auto& host : hosts_) {
    // What it came to is known; something there, or ssh itself, holds the connection open.
    const bool is_over = host->end.job_code.has_value() && !host->has_ended;
    if (is_over && now >= host->heard_at + kLingers) host->process->Kill(SIGKILL);
  }
}

}  // namespace muster::launcher
