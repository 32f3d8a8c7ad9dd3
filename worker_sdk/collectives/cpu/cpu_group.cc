#include "worker_sdk/collectives/cpu/cpu_group.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "worker_sdk/collectives/cpu/data_movement.h"
#include "worker_sdk/collectives/cpu/direct_reduce.h"
#include "worker_sdk/collectives/cpu/mesh.h"
#include "worker_sdk/collectives/cpu/progress_loop.h"
#include "worker_sdk/collectives/cpu/ring_all_reduce.h"

namespace muster {
namespace cpu {
namespace {

Work Invalid(std::string message) {
  return Work(Status(StatusCode::kInvalidArgument, std::move(message)));
}

// Memory that can be: a place for it, and a size that a pointer can span (which also keeps all
// arithmetic on sizes from wrapping around).
template <class AnyBuffer>
bool IsMemory(const AnyBuffer& buffer) {
  size_t most = static_cast<size_t>(PTRDIFF_MAX) / SizeOf(buffer.type);
  return buffer.count == 0 || (buffer.data != nullptr && buffer.count <= most);
}
template <class AnyBuffer>
Work NoMemory(const char* call, const AnyBuffer& buffer) {
  return Invalid(std::string(call) + " of " + std::to_string(buffer.count) + " elements of " +
                 DataTypeName(buffer.type) + " " +
                 (buffer.data == nullptr ? "at a null pointer" : "is more than memory can have"));
}

// Whether two buffers share no byte.
bool AreApart(const ConstBuffer& a, const Buffer& b) {
  const auto* first = static_cast<const std::byte*>(a.data);
  const auto* second = static_cast<const std::byte*>(b.data);
  return first + a.bytes() <= second || second + b.bytes() <= first;
}

class CpuGroup : public ProcessGroup {
 public:
  // `loop` is none in a world of one.
  CpuGroup(const CpuGroupOptions& options, std::unique_ptr<ProgressLoop> loop)
      : place_{options.rank, options.world_size},
        algorithm_(options.algorithm),
        sent_to_(static_cast<size_t>(options.world_size), 0),
        received_from_(static_cast<size_t>(options.world_size), 0),
        loop_(std::move(loop)) {}

  int rank() const override { return place_.rank; }
  int world_size() const override { return place_.world_size; }

  Work Barrier() override {
    base::MutexLock lock(mutex_);
    return Begin<cpu::Barrier>({CallKind::kBarrier, NextCall()});
  }

  Work Broadcast(Buffer data, int root) override {
    if (!IsRank(root)) return Invalid("broadcast from rank " + NoRank(root));
    if (!IsMemory(data)) return NoMemory("broadcast", data);
    base::MutexLock lock(mutex_);
    return Begin<cpu::Broadcast>(
        {CallKind::kBroadcast, NextCall(), data.type, ReduceOp::kSum, root, data.count}, data);
  }

  Work AllReduce(Buffer data, ReduceOp op) override {
    if (!CanReduce(data.type, op)) return Invalid(CannotAverage("all_reduce", data.type));
    if (!IsMemory(data)) return NoMemory("all_reduce", data);
    base::MutexLock lock(mutex_);
    if (algorithm_ == Algorithm::kRing) {
      return Begin<RingAllReduce>(
          {CallKind::kRingAllReduce, NextCall(), data.type, op, -1, data.count}, data);
    }
    return Begin<DirectReduce>({CallKind::kAllReduce, NextCall(), data.type, op, -1, data.count},
                               data);
  }

  Work AllGather(ConstBuffer input, Buffer output) override {
    if (!IsMemory(input)) return NoMemory("all_gather", input);
    if (!IsMemory(output)) return NoMemory("all_gather", output);
    if (input.type != output.type || output.count != input.count * Ranks()) {
      return Invalid("all_gather of " + std::to_string(input.count) + " elements per rank into " +
                     std::to_string(output.count) + " elements: a world of " +
                     std::to_string(Ranks()) + " needs " + std::to_string(input.count * Ranks()) +
                     " of the same type");
    }
    if (input.count != 0 && !AreApart(input, output) &&
        input.data != OwnSlice(output.data, input.bytes())) {
      return Invalid("all_gather: the input overlaps the output and isn't this rank's slice of it");
    }
    base::MutexLock lock(mutex_);
    return Begin<cpu::AllGather>(
        {CallKind::kAllGather, NextCall(), input.type, ReduceOp::kSum, -1, input.count}, input,
        output);
  }

  Work ReduceScatter(ConstBuffer input, Buffer output, ReduceOp op) override {
    if (!CanReduce(input.type, op)) return Invalid(CannotAverage("reduce_scatter", input.type));
    if (!IsMemory(input)) return NoMemory("reduce_scatter", input);
    if (!IsMemory(output)) return NoMemory("reduce_scatter", output);
    if (input.type != output.type || input.count != output.count * Ranks()) {
      return Invalid("reduce_scatter of " + std::to_string(input.count) + " elements into " +
                     std::to_string(output.count) + " elements per rank: a world of " +
                     std::to_string(Ranks()) + " needs " + std::to_string(output.count * Ranks()) +
                     " of the same type");
    }
    // Anywhere else it would overwrite what other ranks are still to get.
    if (output.count != 0 && !AreApart(input, output) &&
        output.data != OwnSlice(input.data, output.bytes())) {
      return Invalid(
          "reduce_scatter: the output overlaps the input and isn't this rank's slice of it");
    }
    base::MutexLock lock(mutex_);
    return Begin<DirectReduce>(
        {CallKind::kReduceScatter, NextCall(), input.type, op, -1, output.count}, input, output);
  }

  Work Send(ConstBuffer data, int to) override {
    if (!IsRank(to) || to == place_.rank) return Invalid("send to rank " + NoRank(to));
    if (!IsMemory(data)) return NoMemory("send", data);
    base::MutexLock lock(mutex_);
    return Begin<cpu::Send>({CallKind::kSendReceive, ++sent_to_[static_cast<size_t>(to)], data.type,
                             ReduceOp::kSum, to, data.count},
                            data, to);
  }

  Work Receive(Buffer data, int from) override {
    if (!IsRank(from) || from == place_.rank) return Invalid("receive from rank " + NoRank(from));
    if (!IsMemory(data)) return NoMemory("receive", data);
    base::MutexLock lock(mutex_);
    return Begin<cpu::Receive>({CallKind::kSendReceive, ++received_from_[static_cast<size_t>(from)],
                                data.type, ReduceOp::kSum, place_.rank, data.count},
                               data, from);
  }

 private:
  size_t Ranks() const { return static_cast<size_t>(place_.world_size); }
  const std::byte* OwnSlice(const void* whole, size_t slice_bytes) const {
    return static_cast<const std::byte*>(whole) + static_cast<size_t>(place_.rank) * slice_bytes;
  }
  bool IsRank(int rank) const { return rank >= 0 && rank < place_.world_size; }
  std::string NoRank(int rank) const {
    return std::to_string(rank) + " can't be: this is rank " + std::to_string(place_.rank) +
           " in a world of " + std::to_string(place_.world_size);
  }
  static bool CanReduce(DataType type, ReduceOp op) {
    return op != ReduceOp::kAvg || type == DataType::kF32 || type == DataType::kF64;
  }
  static std::string CannotAverage(const char* call, DataType type) {
    return std::string(call) + ": an average of integers (" + DataTypeName(type) +
           ") isn't an integer; use sum";
  }
  uint64_t NextCall() MUSTER_REQUIRES(mutex_) { return ++calls_; }

  // The lock makes the order of the sequence numbers the order of the operations.
  template <class Op, class... Args>
  Work Begin(const Call& call, Args... args) MUSTER_REQUIRES(mutex_) {
    auto operation = std::make_unique<Op>(call, place_, args...);
    auto state = std::make_shared<Work::State>();
    if (loop_) {
      loop_->Start(std::move(operation), state);
    } else {
      // Alone, an operation is complete when it is made.
      state->Finish({});
    }
    return Work(std::move(state));
  }

  const Place place_;
  const Algorithm algorithm_;
  base::Mutex mutex_;
  uint64_t calls_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> sent_to_ MUSTER_GUARDED_BY(mutex_);
  std::vector<uint64_t> received_from_ MUSTER_GUARDED_BY(mutex_);
  const std::unique_ptr<ProgressLoop> loop_;
};

}  // namespace
}  // namespace cpu

Result<std::unique_ptr<ProcessGroup>> CreateCpuGroup(Store& store, AbortSignal& abort,
                                                     const CpuGroupOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    return Status(StatusCode::kInvalidArgument, "there's no rank " + std::to_string(options.rank) +
                                                    " in a world of " +
                                                    std::to_string(options.world_size));
  }
  std::unique_ptr<cpu::ProgressLoop> loop;
  if (options.world_size > 1) {
    PeerWaits::Wait wait(options.waits);
    Result<std::vector<cpu::Socket>> sockets = cpu::ConnectMesh(store, abort, options);
    if (!sockets.ok()) return sockets.status();
    std::vector<std::unique_ptr<cpu::Link>> links(sockets->size());
    for (size_t r = 0; r < links.size(); ++r) {
      cpu::Socket& socket = (*sockets)[r];
      if (socket.IsOpen()) links[r] = std::make_unique<cpu::Link>(std::move(socket));
    }
    loop = std::make_unique<cpu::ProgressLoop>(
        std::move(links), abort,
        cpu::ProgressLoop::Options{{options.rank, options.world_size},
                                   options.culprit_grace,
                                   options.leave_patience,
                                   options.waits});
  }
  return std::unique_ptr<ProcessGroup>(std::make_unique<cpu::CpuGroup>(options, std::move(loop)));
}

}  // namespace muster
