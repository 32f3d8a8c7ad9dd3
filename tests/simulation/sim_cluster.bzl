"""The parts of the simulation that hold the real machines, for one build of the job's machine."""

def sim_cluster(name, job_machine, **kwargs):
    """A library of the simulated cluster around `job_machine`.

    The parts include each other (an agent reports to the invariants, which look at agents), so they
    are one target.

    Args:
      name: of the library.
      job_machine: the product's machine, or the one that faults can be planted into.
      **kwargs: passed on.
    """
    native.cc_library(
        name = name,
        srcs = [
            "invariants.cc",
            "round_invariants.cc",
            "rule_invariants.cc",
            "sim_agent.cc",
            "sim_agent_workers.cc",
            "sim_agent_saving.cc",
            "sim_rendezvous.cc",
            "sim_world.cc",
            "workload.cc",
        ],
        hdrs = [
            "invariants.h",
            "sim_agent.h",
            "sim_parts.h",
            "sim_rendezvous.h",
            "sim_world.h",
            "workload.h",
        ],
        testonly = True,
        deps = [
            ":event_queue",
            ":fault_plan",
            ":sim_network",
            ":sim_random",
            ":trace",
            ":worlds",
            "//agent/core:agent_machine",
            "//base:ids",
            "//base:instant",
            "//base:job_types",
            "//base:session_messages",
            job_machine,
        ],
        **kwargs
    )
