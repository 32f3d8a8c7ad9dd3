#include <gtest/gtest.h>

TEST(Simulation, Placeholder) { EXPECT_TRUE(true); }
