#include "examples/fashion_mnist/report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace fashion_mnist {
namespace {

// What `use` makes a report print.
template <class Use>
std::string Printed(bool is_terminal, const Use& use) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  Report report(out, is_terminal);
  use(report);
  std::fclose(out);
  std::string printed(text, size);
  std::free(text);  // NOLINT: as open_memstream() wants it
  return printed;
}

TEST(Report, PrintsLinesButNoBarIntoAPipe) {
  EXPECT_EQ(Printed(false,
                    [](Report& report) {
                      report.Step(1, 50, 100);
                      report.Line("epoch 1");
                    }),
            "epoch 1\n");
}

TEST(Report, DrawsABarOnATerminalAndClearsItForALine) {
  EXPECT_EQ(Printed(true,
                    [](Report& report) {
                      report.Step(3, 500, 1000);
                      report.Step(3, 501, 1000);  // Still 50 %.
                      report.Line("epoch 3");
                      report.Line("done");
                    }),
            "\repoch 3 [" + std::string(20, '#') + std::string(20, '.') +
                "]  50 %\r\033[Kepoch 3\ndone\n");
}

TEST(Report, WithoutAFileItIsSilent) {
  Report report(nullptr, true);
  report.Step(1, 1, 0);
  report.Line("nothing");
  SUCCEED();
}

}  // namespace
}  // namespace fashion_mnist
