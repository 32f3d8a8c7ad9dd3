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

TEST(TaskQueue, RefusesAnOfferWhenItIsFullAndTakesWhatCannotBeLost) {
  TaskQueue queue;
  for (size_t i = 0; i < TaskQueue::kMostOffered; ++i) ASSERT_TRUE(queue.Offer([] {}));
  EXPECT_FALSE(queue.Offer([] {}));
  bool is_done = false;
  queue.Post([&] { is_done = true; });
  for (size_t i = 0; i <= TaskQueue::kMostOffered; ++i) queue.Take(Duration::max())();
  EXPECT_TRUE(is_done);
  EXPECT_TRUE(queue.Offer([] {}));
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
