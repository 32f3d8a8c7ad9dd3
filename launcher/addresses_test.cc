#include "launcher/addresses.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

Address Only(const std::string& host) {
  absl::StatusOr<std::vector<Address>> addresses = Resolve(host);
  EXPECT_TRUE(addresses.ok()) << addresses.status().message();
  EXPECT_EQ(addresses->size(), 1u);
  return addresses->front();
}

TEST(Addresses, ResolvesDigitsWithoutAResolver) {
  EXPECT_EQ(Only("192.0.2.7").ToString(), "192.0.2.7");
  EXPECT_EQ(Only("2001:db8::1").ToString(), "2001:db8::1");
  EXPECT_FALSE(Only("192.0.2.7").IsLoopback());
  EXPECT_TRUE(Only("127.0.1.1").IsLoopback());
  EXPECT_TRUE(Only("::1").IsLoopback());
}

TEST(Addresses, ResolvesLocalhost) {
  absl::StatusOr<std::vector<Address>> addresses = Resolve("localhost");
  ASSERT_TRUE(addresses.ok());
  for (const Address& address : *addresses) EXPECT_TRUE(address.IsLoopback());
}

TEST(Addresses, SaysWhatDoesNotResolve) {
  absl::StatusOr<std::vector<Address>> addresses = Resolve("no-such-host.invalid");
  EXPECT_EQ(addresses.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(addresses.status().message()), HasSubstr("no-such-host.invalid"));
}

TEST(Addresses, KnowsItsOwn) {
  EXPECT_TRUE(IsOwnAddress(Only("127.0.0.1")));
  EXPECT_TRUE(IsOwnAddress(Only("127.3.2.1")));
  // Reserved for documentation: nobody's.
  EXPECT_FALSE(IsOwnAddress(Only("192.0.2.1")));
  for (const Address& address : OutwardAddresses()) {
    EXPECT_FALSE(address.IsLoopback());
    EXPECT_TRUE(IsOwnAddress(address)) << address.ToString();
  }
}

TEST(Addresses, FindsTheLocalEnd) {
  absl::StatusOr<Address> end = LocalEndTowards(Only("127.0.0.1"));
  ASSERT_TRUE(end.ok()) << end.status().message();
  EXPECT_EQ(end->ToString(), "127.0.0.1");
}

TEST(Addresses, AreListedForPeople) {
  EXPECT_EQ(ListOf({Only("10.0.0.1"), Only("::1")}), "10.0.0.1, ::1");
  EXPECT_EQ(ListOf({}), "");
}

}  // namespace
}  // namespace muster::launcher
