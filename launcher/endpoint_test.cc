#include "launcher/endpoint.h"

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

TEST(Endpoint, TakesHostsAndPorts) {
  const struct {
    std::string_view text;
    Endpoint endpoint;
  } kCases[] = {
      {"host", {"host", 29400}},
      {"host:1", {"host", 1}},
      {"10.0.0.1:65535", {"10.0.0.1", 65535}},
      {"localhost:0", {"localhost", 0}},
      {"[::1]:80", {"::1", 80}},
      {"[fe80::1]", {"fe80::1", 29400}},
      {"fe80::1", {"fe80::1", 29400}},
  };
  for (const auto& c : kCases) EXPECT_EQ(ParseEndpoint(c.text, 29400), c.endpoint) << c.text;
}

TEST(Endpoint, RefusesWhatIsNone) {
  for (std::string_view text : {"", ":80", "host:", "host:x", "host:65536", "host:-1", "[::1",
                                "[::1]80", "a b:1", "http://host:80", "host:000080"}) {
    EXPECT_EQ(ParseEndpoint(text, 29400), std::nullopt) << text;
  }
}

TEST(Endpoint, WritesItselfAsItIsRead) {
  EXPECT_EQ((Endpoint{"::1", 80}.ToString()), "[::1]:80");
  EXPECT_EQ((Endpoint{"host", 80}.ToString()), "host:80");
}

}  // namespace
}  // namespace muster::launcher
