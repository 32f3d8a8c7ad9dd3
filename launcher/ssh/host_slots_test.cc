#include "launcher/ssh/host_slots.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Hosts = std::vector<HostSlots>;

Hosts Parse(std::string_view text) {
  absl::StatusOr<Hosts> hosts = ParseHosts("--hosts", text);
  EXPECT_TRUE(hosts.ok()) << text << ": " << hosts.status().message();
  return hosts.value_or(Hosts{});
}

Hosts ParseFile(std::string_view text) {
  absl::StatusOr<HostFile> file = ParseHostFile("hosts", text);
  EXPECT_TRUE(file.ok()) << text << ": " << file.status().message();
  return file.value_or(HostFile{}).hosts;
}

template <class Value>
std::string ErrorOf(const absl::StatusOr<Value>& hosts) {
  EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(hosts.status().message());
}

TEST(HostSlots, TakesNamesWithAndWithoutANumber) {
  EXPECT_THAT(Parse("a"), ElementsAre(HostSlots{"a", 0}));
  EXPECT_THAT(Parse("a,b:4, c.example.org:16"),
              ElementsAre(HostSlots{"a", 0}, HostSlots{"b", 4}, HostSlots{"c.example.org", 16}));
  EXPECT_THAT(Parse("alice@a:2"), ElementsAre(HostSlots{"alice@a", 2}));
  EXPECT_EQ((HostSlots{"alice@a", 2}.host()), "a");
  EXPECT_EQ((HostSlots{"a", 2}.host()), "a");
  EXPECT_THAT(Parse("me@site.org@a:2"), ElementsAre(HostSlots{"me@site.org@a", 2}));
  EXPECT_EQ((HostSlots{"me@site.org@a", 2}.host()), "a");
}

TEST(HostSlots, TakesAddressesAndSlurmsRanges) {
  EXPECT_THAT(
      Parse("10.0.0.1:2,[fe80::1]:3,[fe80::2]"),
      ElementsAre(HostSlots{"10.0.0.1", 2}, HostSlots{"fe80::1", 3}, HostSlots{"fe80::2", 0}));
  EXPECT_THAT(Parse("n[09-10,3]:2,login"), ElementsAre(HostSlots{"n09", 2}, HostSlots{"n10", 2},
                                                       HostSlots{"n3", 2}, HostSlots{"login", 0}));
}

TEST(HostSlots, AddsUpAHostThatComesAgain) {
  EXPECT_THAT(Parse("a,a"), ElementsAre(HostSlots{"a", 2}));
  EXPECT_THAT(Parse("a:2,b,a:3"), ElementsAre(HostSlots{"a", 5}, HostSlots{"b", 0}));
  EXPECT_THAT(Parse("a,a:3"), ElementsAre(HostSlots{"a", 4}));
}

TEST(HostSlots, RefusesWhatIsNoHost) {
  for (const char* text :
       {"",        ",",   "a,",   "a:0", "a:x",    "a:",      ":4",   "-oProxyCommand=x",
        "a b",     "a;b", "u@-x", "n[1", "a:5000", "fe80::1", "$(x)", "a=2",
        "slots=2", "a*",  "@a",   "u@"}) {
    EXPECT_THAT(ErrorOf(ParseHosts("--hosts", text)),
                testing::AllOf(HasSubstr("--hosts: "), HasSubstr("HOST:N")))
        << text;
  }
}

TEST(HostFile, TakesBothFormsAndComments) {
  EXPECT_THAT(ParseFile("# mine\n\na slots=4\n  b:2   # two\nc\nd slots=1 max_slots=8\r\n"
                        "e user=bob slots=3"),
              ElementsAre(HostSlots{"a", 4}, HostSlots{"b", 2}, HostSlots{"c", 0},
                          HostSlots{"d", 1}, HostSlots{"bob@e", 3}));
  EXPECT_THAT(ParseFile("a\na\nb slots=2\nb slots=2\n"),
              ElementsAre(HostSlots{"a", 2}, HostSlots{"b", 4}));
}

TEST(HostFile, TakesBlanksAroundTheEqualsSign) {
  EXPECT_THAT(
      ParseFile("a slots = 4\nb\tslots =2 # x\nc slots= 3 max-slots = 4\n"
                "d  user = bob  slots=\t5"),
      ElementsAre(HostSlots{"a", 4}, HostSlots{"b", 2}, HostSlots{"c", 3}, HostSlots{"bob@d", 5}));
}

TEST(HostFile, TakesUsersAndIpv6) {
  EXPECT_THAT(
      ParseFile("alice@a slots=2\nalice@b:3\n[fe80::1]:2\n[fe80::2] slots=3\n"
                "fe80::3 slots=4\nfe80::4%eth0\nbob@[fe80::5] slots=6\nbob@fe80::6 slots=7"),
      ElementsAre(HostSlots{"alice@a", 2}, HostSlots{"alice@b", 3}, HostSlots{"fe80::1", 2},
                  HostSlots{"fe80::2", 3}, HostSlots{"fe80::3", 4}, HostSlots{"fe80::4%eth0", 0},
                  HostSlots{"bob@fe80::5", 6}, HostSlots{"bob@fe80::6", 7}));
}

TEST(HostFile, TellsWhatHasNoEffect) {
  EXPECT_EQ(ParseHostFile("hosts", "a slots=2\n")->idle, "");
  EXPECT_EQ(ParseHostFile("hosts", "a slots=2\nb max_slots = 10000\nc max-slots=2\n")->idle,
            "hosts:2: max_slots=10000");
}

TEST(HostFile, NamesTheLineThatIsWrong) {
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a\nb slots=x\n")),
              testing::AllOf(HasSubstr("hosts:2: \"slots=x\""), HasSubstr("slots=N")));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a\n\n# c\nb 4\n")), HasSubstr("hosts:4: \"4\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a:0\n")), HasSubstr("hosts:1: \"a:0\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a:2 slots=2\n")), HasSubstr("hosts:1: \"slots=2\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a slots=2 slots=2\n")),
              HasSubstr("hosts:1: \"slots=2\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a slots=5000\n")),
              testing::AllOf(HasSubstr("hosts:1: \"slots=5000\""), HasSubstr("4096")));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a max_slots=x\n")),
              HasSubstr("hosts:1: \"max_slots=x\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a slots =\n")), HasSubstr("hosts:1: \"slots=\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "slots=2\n")), HasSubstr("hosts:1: \"slots=2\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "= 2\n")), HasSubstr("hosts:1: \"=2\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "u@a user=v\n")), HasSubstr("hosts:1: \"user=v\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "a cpus=2\n")), HasSubstr("hosts:1: \"cpus=2\""));
  EXPECT_THAT(ErrorOf(ParseHostFile("hosts", "# none\n\n")), HasSubstr("names no host"));
}

TEST(FillHosts, FillsInOrder) {
  const Hosts hosts = {{"a", 2}, {"b", 0}, {"c", 4}};
  EXPECT_THAT(*FillHosts(hosts, 1, 1), ElementsAre(HostSlots{"a", 1}));
  EXPECT_THAT(*FillHosts(hosts, 4, 1),
              ElementsAre(HostSlots{"a", 2}, HostSlots{"b", 1}, HostSlots{"c", 1}));
  EXPECT_THAT(*FillHosts(hosts, 9, 3),
              ElementsAre(HostSlots{"a", 2}, HostSlots{"b", 3}, HostSlots{"c", 4}));
}

TEST(FillHosts, RefusesMoreThanThereAreSlots) {
  EXPECT_THAT(ErrorOf(FillHosts({{"a", 2}, {"b", 0}}, 4, 1)),
              testing::AllOf(HasSubstr("-np 4"), HasSubstr("(3)")));
}

}  // namespace
}  // namespace muster::launcher
