// What the agent of this node is told, from what was asked and planned. Reads this process's
// environment and terminal.
#ifndef MUSTER_LAUNCHER_JOB_SETTINGS_H_
#define MUSTER_LAUNCHER_JOB_SETTINGS_H_

#include <string>

#include "agent/agent_settings.h"
#include "launcher/launch_plan.h"
#include "launcher/meeting_place.h"
#include "launcher/run_options.h"

namespace muster::launcher {

agent::AgentSettings JobSettings(const RunOptions& options, const LaunchPlan& plan,
                                 const MeetingPlace& place);

// Several agents on one host are told apart by what they were told to be.
std::string NodeName(const RunOptions& options);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_JOB_SETTINGS_H_
