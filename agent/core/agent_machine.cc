#include "agent/core/agent_machine.h"

#include <utility>

#include "agent/core/agent_rules.h"

namespace muster::agent {

AgentMachine::AgentMachine(AgentOptions options, Incarnation incarnation, Instant started)
    : rules_(std::make_unique<AgentRules>(std::move(options), incarnation, started)) {}
AgentMachine::~AgentMachine() = default;

std::vector<AgentEffect> AgentMachine::Start() { return {Connect{}}; }

std::vector<AgentEffect> AgentMachine::Step(const StepInput& input, const AgentEvent& event) {
  return rules_->Step(input, event);
}

Instant AgentMachine::NextWakeup() const { return rules_->NextWakeup(); }
Incarnation AgentMachine::incarnation() const { return rules_->incarnation(); }
bool AgentMachine::has_ended() const { return rules_->has_ended(); }

}  // namespace muster::agent
