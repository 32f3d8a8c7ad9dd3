// A peer that has proven itself and then sends nonsense: the group ends with PeerLost and its rank,
// and never reads beyond a buffer.
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/group_rig.h"
#include "worker_sdk/collectives/cpu/mesh.h"
#include "worker_sdk/collectives/cpu/wire.h"

namespace muster::cpu {
namespace {

constexpr size_t kCount = 100;

template <class Bytes>
std::string Text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string RightCall() {
  Call call{CallKind::kAllReduce, 1, DataType::kF32, ReduceOp::kSum, -1, kCount};
  return Text(EncodeHeader({FrameKind::kCall, 0, kCallBytes})) + Text(EncodeCall(call));
}

std::string Data(uint8_t lane, size_t size) {
  return Text(EncodeHeader({FrameKind::kData, lane, static_cast<uint32_t>(size)})) +
         std::string(size, 'x');
}

// Rank 0's all-reduce against a rank 1 that sends `bytes` and closes.
Status AllReduceAgainst(const std::string& bytes) {
  GroupRig rig(2);
  rig.options().culprit_grace = std::chrono::milliseconds(1);
  std::thread hostile([&] {
    auto sockets = ConnectMesh(rig.store(), rig.abort(1), rig.OptionsOf(1));
    ASSERT_TRUE(sockets.ok()) << sockets.status().message();
    (void)send((*sockets)[0].fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    (void)shutdown((*sockets)[0].fd(), SHUT_WR);
    // Until rank 0 has closed, so that the bytes aren't thrown away.
    std::array<char, 4096> sink;
    while (recv((*sockets)[0].fd(), sink.data(), sink.size(), MSG_WAITALL) > 0) {
    }
  });
  std::vector<float> values(kCount);
  Status status;
  {
    auto group = rig.Join(0);
    EXPECT_TRUE(group.ok()) << group.status().message();
    status = (*group)->AllReduce(MutableView(values), ReduceOp::kSum).Wait();
  }
  hostile.join();
  return status;
}

TEST(HostilePeer, NonsenseEndsTheGroupWithItsRank) {
  const std::pair<const char*, std::string> cases[] = {
      {"no message of muster's", std::string(100, 'x')},
      {"belong to no operation", Data(0, 4)},
      {"belong to no operation", RightCall() + Data(0, 4)},
      {"belong to no operation", RightCall() + Data(9, 200)},
      {"belong to no operation", RightCall() + Data(0, 200) + Data(0, 200)},
      {"belong to no operation", RightCall() + Data(1, 204)},
      {"end of the connection", RightCall() + Data(0, 200).substr(0, 50)},
      {"end of the connection", RightCall().substr(0, 3)},
      {"has left", Text(EncodeHeader({FrameKind::kGoodbye, 0, 0}))},
  };
  for (const auto& [words, bytes] : cases) {
    Status status = AllReduceAgainst(bytes);
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status.message();
    EXPECT_EQ(status.lost_rank(), 1) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
}

TEST(HostilePeer, RandomDamageNeverCrashesOrHangs) {
  std::mt19937 random(1);
  std::string right = RightCall() + Data(0, 200) + Data(1, 200);
  for (int i = 0; i < 100; ++i) {
    std::string bytes = right;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes[random() % 50] = static_cast<char>(random());
    // Damage of the numbers alone may go unseen; everything else is an error.
    Status status = AllReduceAgainst(bytes);
    EXPECT_EQ(status.ok(), status.message().empty());
  }
}

}  // namespace
}  // namespace muster::cpu
