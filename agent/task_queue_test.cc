#include "agent/task_queue.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

TEST(TaskQueue, GivesTasksInOrder) {
  TaskQueue queue;
  std::vector<int> done;
  for (int i = 0; i < 3; ++i) queue.Post([&done, i] { done.push_back(i); });
  for (int i = 0; i < 3; ++i) queue.Take(Duration::max())();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
}

TEST(TaskQueue, GivesNothingWhenTheTimeIsOver) {
  TaskQueue queue;
  EXPECT_EQ(queue.Take(std::chrono::milliseconds(1)), nullptr);
  EXPECT_EQ(queue.Take(-std::chrono::seconds(1)), nullptr);
}

TEST(TaskQueue, WakesWhoWaits) {
  TaskQueue queue;
  bool is_done = false;
  std::thread other([&] { queue.Post([&] { is_done = true; }); });
  queue.Take(Duration::max())();
  other.join();
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace muster::agent
