#include "rendezvous/server/own_address.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

TEST(OwnAddress, LoopbackIsOwnAndOtherHostsAreNot) {
  EXPECT_TRUE(IsOwnAddress("127.0.0.1"));
  EXPECT_TRUE(IsOwnAddress("127.0.0.77"));
  // Kept for documentation: nobody has it.
  EXPECT_FALSE(IsOwnAddress("192.0.2.1"));
}

TEST(OwnAddress, WhatIsNoAddressIsNobodys) {
  for (const char* text : {"", "localhost", "127.0.0.1:80", "[::1]", "300.0.0.1", "::1 "}) {
    EXPECT_FALSE(IsOwnAddress(text)) << text;
  }
}

}  // namespace
}  // namespace muster::rendezvous
