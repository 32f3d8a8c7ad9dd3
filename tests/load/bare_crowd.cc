#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/load/bare.grpc.pb.h"
#include "tests/load/bare_words.h"
#include "tests/load/crowd.h"

namespace muster::load {
namespace {

// One member: joins, and answers. gRPC runs its reactions one after the other.
class BareMember : public grpc::ClientBidiReactor<proto::Word, proto::Word> {
 public:
  BareMember(const std::string& target, Tally* tally) : tally_(tally) {
    // As muster's client has them: the limit gets the same chances.
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = proto::Bare::NewStub(
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), args));
    stub_->async()->Session(&context_, this);
    StartCall();
  }

 private:
  void OnReadInitialMetadataDone(bool ok) override {
    if (!ok) return;
    outgoing_.set_kind(proto::Word::JOIN);
    FillUp(&outgoing_);
    StartWrite(&outgoing_);
    StartRead(&incoming_);
    tally_->Attached();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (incoming_.kind() == proto::Word::START) {
      tally_->Started(incoming_.round(), incoming_.rank(), incoming_.world_size());
    } else if (incoming_.kind() == proto::Word::STOP) {
      tally_->Stopped(incoming_.round());
      outgoing_.Clear();
      outgoing_.set_kind(proto::Word::STOP_DONE);
      outgoing_.set_round(incoming_.round());
      FillUp(&outgoing_);
      StartWrite(&outgoing_);
    }
    StartRead(&incoming_);
  }
  void OnDone(const grpc::Status& status) override {
    tally_->Disturbed("a bare stream ended: " + status.error_message());
  }

  Tally* const tally_;
  std::unique_ptr<proto::Bare::Stub> stub_;
  grpc::ClientContext context_;
  proto::Word incoming_;
  proto::Word outgoing_;
};

class BareCrowd : public Crowd {
 public:
  BareCrowd(const CrowdOptions& options, Tally* tally)
      : target_("ipv4:127.0.0.1:" + std::to_string(options.port)), tally_(tally) {}

  void Add(int count) override {
    tally_->Expect(count);
    for (int i = 0; i < count; ++i) {
      members_.push_back(std::make_unique<BareMember>(target_, tally_));
    }
  }

 private:
  const std::string target_;
  Tally* const tally_;
  std::vector<std::unique_ptr<BareMember>> members_;
};

}  // namespace

std::unique_ptr<Crowd> NewBareCrowd(const CrowdOptions& options, Tally* tally) {
  return std::make_unique<BareCrowd>(options, tally);
}

}  // namespace muster::load
