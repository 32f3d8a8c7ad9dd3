#include "base/visible_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(VisibleText, ShowsControlCharactersInsteadOfObeyingThem) {
  EXPECT_EQ(VisibleText("a b-c"), "a b-c");
  EXPECT_EQ(VisibleText("\x01\x1b[31mred\r\n\x7f"), "\\x01\\x1b[31mred\\x0d\\x0a\\x7f");
  EXPECT_EQ(VisibleText(std::string("\0", 1)), "\\x00");
}

TEST(VisibleText, KeepsTheOnesThatAreNamed) {
  EXPECT_EQ(VisibleText("a\tb\nc\x1b", "\n\t"), "a\tb\nc\\x1b");
}

TEST(VisibleText, LeavesOtherCharactersOfUtf8Alone) {
  // The second byte of the first one, and both others of the second, look like controls.
  for (const char* text : {"Ä", "€", "\xe2\x80\x9c", "\xf0\x9f\x98\x80", "naïve"})
    EXPECT_EQ(VisibleText(text), text);
}

TEST(VisibleText, ShowsControlsAboveAscii) {
  // CSI, as UTF-8 and as the byte that terminals of 8 bits obey.
  EXPECT_EQ(VisibleText("\xc2\x9b"
                        "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(VisibleText("\x9b"
                        "31m"),
            "\\x9b31m");
  EXPECT_EQ(VisibleText("\xc3\xa4\x9b"), "\xc3\xa4\\x9b");
  EXPECT_EQ(VisibleText("\xc2"), "\xc2");
}

}  // namespace
}  // namespace muster
