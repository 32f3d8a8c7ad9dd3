#include "worker_sdk/ddp/reducer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "base/check.h"
#include "worker_sdk/ddp/agreement.h"

namespace muster {
namespace {

bool IsFloatingPoint(DataType type) { return type == DataType::kF32 || type == DataType::kF64; }

// The last element of the last bucket counts the ranks that left a parameter unmarked: the news
// travel with the gradients and cost no call of their own.
void WriteFlag(std::byte* at, DataType type, bool is_set) {
  if (type == DataType::kF32) {
    float flag = is_set ? 1 : 0;
    std::memcpy(at, &flag, sizeof(flag));
  } else {
    double flag = is_set ? 1 : 0;
    std::memcpy(at, &flag, sizeof(flag));
  }
}

bool ReadFlag(const std::byte* at, DataType type) {
  if (type == DataType::kF32) {
    float flag = 0;
    std::memcpy(&flag, at, sizeof(flag));
    return flag != 0;
  }
  double flag = 0;
  std::memcpy(&flag, at, sizeof(flag));
  return flag != 0;
}

}  // namespace

struct Reducer::BucketState {
  // Gradients, and behind those of the last bucket the flag. Doubles for their alignment.
  std::unique_ptr<double[]> memory;
  size_t unmarked = 0;
  std::optional<Work> work;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(memory.get()); }
};

Result<std::unique_ptr<Reducer>> Reducer::Create(ProcessGroup& group,
                                                 std::vector<Parameter> parameters,
                                                 ReducerOptions options) {
  std::unique_ptr<Reducer> reducer(new Reducer(group, std::move(parameters), std::move(options)));
  Status own = reducer->CheckParameters();
  if (own.ok()) own = reducer->Allocate();
  std::vector<std::string> lines;
  for (const Parameter& parameter : reducer->parameters_) {
    lines.push_back("'" + parameter.name + "' (" + DataTypeName(parameter.type) + ", " +
                    std::to_string(parameter.count) + " elements)");
  }
  Status status = CheckAgreement(group, lines, own);
  if (status.ok()) status = reducer->BroadcastParameters();
  if (!status.ok()) return status;
  return reducer;
}

Reducer::Reducer(ProcessGroup& group, std::vector<Parameter> parameters, ReducerOptions options)
    : group_(group), parameters_(std::move(parameters)), options_(std::move(options)) {}

Reducer::~Reducer() {
  // The group may still read and write the buckets.
  for (auto& state : states_) {
    if (state && state->work) (void)state->work->Wait();
  }
}

Status Reducer::CheckParameters() const {
  for (const Parameter& parameter : parameters_) {
    if (!IsFloatingPoint(parameter.type)) {
      return {StatusCode::kInvalidArgument, "parameter '" + parameter.name + "' has type " +
                                                DataTypeName(parameter.type) +
                                                "; gradients are f32 or f64"};
    }
    if (parameter.data == nullptr && parameter.count != 0) {
      return {StatusCode::kInvalidArgument, "parameter '" + parameter.name + "' has no data"};
    }
  }
  return {};
}

Status Reducer::Allocate() {
  std::vector<GradientShape> shapes;
  for (const Parameter& parameter : parameters_)
    shapes.push_back({parameter.count, parameter.type});
  plan_ = PlanBuckets(shapes, options_.limits);
  bucket_of_.resize(parameters_.size());
  offset_of_.resize(parameters_.size());
  marked_.resize(parameters_.size());
  for (size_t b = 0; b < plan_.size(); ++b) {
    size_t element = SizeOf(plan_[b].type);
    size_t offset = 0;
    for (size_t index : plan_[b].parameters) {
      bucket_of_[index] = b;
      offset_of_[index] = offset;
      offset += parameters_[index].count * element;
    }
    if (b + 1 == plan_.size()) offset += element;
    auto state = std::make_unique<BucketState>();
    state->memory.reset(new (std::nothrow) double[offset / sizeof(double) + 1]);
    if (!state->memory) {
      return {StatusCode::kResourceExhausted,
              "no memory for a bucket of " + std::to_string(offset) + " bytes of gradients"};
    }
    state->unmarked = plan_[b].parameters.size();
    states_.push_back(std::move(state));
  }
  ZeroGradients();
  return {};
}

Status Reducer::BroadcastParameters() {
  std::vector<Work> works;
  for (const Parameter& parameter : parameters_) {
    works.push_back(group_.Broadcast({parameter.data, parameter.count, parameter.type}, 0));
  }
  Status first;
  for (const Work& work : works) {
    Status status = work.Wait();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Buffer Reducer::Gradient(size_t index) const {
  MUSTER_CHECK(index < parameters_.size());
  const Parameter& parameter = parameters_[index];
  return {states_[bucket_of_[index]]->bytes() + offset_of_[index], parameter.count, parameter.type};
}

void Reducer::ZeroGradients() {
  for (size_t b = 0; b < plan_.size(); ++b) {
    if (plan_[b].count == 0) continue;
    std::memset(states_[b]->bytes(), 0, plan_[b].count * SizeOf(plan_[b].type));
  }
}

Status Reducer::MarkReady(size_t index) {
  if (index >= parameters_.size()) {
    return {StatusCode::kInvalidArgument, "there's no parameter " + std::to_string(index) + " of " +
                                              std::to_string(parameters_.size())};
  }
  if (marked_[index] != 0) {
    return {StatusCode::kFailedPrecondition,
            "parameter '" + parameters_[index].name +
                "' was marked ready twice in one step; a parameter that is used twice is marked "
                "once, after its last gradient was added"};
  }
  marked_[index] = 1;
  --states_[bucket_of_[index]]->unmarked;
  if (no_sync_depth_ == 0) LaunchComplete();
  return {};
}

void Reducer::LaunchComplete() {
  while (next_bucket_ < plan_.size() && states_[next_bucket_]->unmarked == 0) {
    Launch(next_bucket_++);
  }
}

void Reducer::Launch(size_t bucket) {
  const Bucket& plan = plan_[bucket];
  BucketState& state = *states_[bucket];
  Buffer data{state.bytes(), plan.count, plan.type};
  if (bucket + 1 == plan_.size()) {
    bool is_missing = std::ranges::find(marked_, 0) != marked_.end();
    WriteFlag(state.bytes() + data.bytes(), plan.type, is_missing);
    ++data.count;
  }
  if (options_.on_launch) options_.on_launch(bucket);
  state.work = group_.AllReduce(data, ReduceOp::kAvg);
}

Status Reducer::Finish() {
  std::vector<char> marked(marked_.size(), 0);
  bool is_sync = no_sync_depth_ == 0;
  // What is incomplete leaves too: the other ranks wait for it, and learn by the flag.
  if (is_sync) {
    while (next_bucket_ < plan_.size()) Launch(next_bucket_++);
  }
  marked.swap(marked_);
  next_bucket_ = 0;
  Status first;
  for (size_t b = 0; b < plan_.size(); ++b) {
    states_[b]->unmarked = plan_[b].parameters.size();
    if (!states_[b]->work) continue;
    Status status = states_[b]->work->Wait();
    states_[b]->work.reset();
    if (first.ok()) first = std::move(status);
  }
  if (!is_sync || plan_.empty() || !first.ok()) return first;
  const Bucket& last = plan_.back();
  const std::byte* flag = states_.back()->bytes() + last.count * SizeOf(last.type);
  if (ReadFlag(flag, last.type)) return NameMissing(marked);
  return {};
}

Status Reducer::NameMissing(const std::vector<char>& marked) {
  std::vector<uint8_t> missing;
  missing.reserve(marked.size());
  for (char is_marked : marked) missing.push_back(is_marked != 0 ? 0 : 1);
  std::vector<uint8_t> by_rank(missing.size() * static_cast<size_t>(group_.world_size()));
  Status status = group_.AllGather(View(missing), MutableView(by_rank)).Wait();
  if (!status.ok()) return status;
  std::string names;
  for (size_t i = 0; i < by_rank.size(); ++i) {
    if (by_rank[i] == 0) continue;
    names += (names.empty() ? "'" : ", '") + parameters_[i % missing.size()].name + "' on rank " +
             std::to_string(i / missing.size());
  }
  return {StatusCode::kFailedPrecondition,
          "parameters were left unmarked in this step: " + names +
              "; mark every parameter ready in every step, also one without a gradient"};
}

}  // namespace muster
