"""What muster still has to learn of torchrun. To be emptied.

What is listed here isn't compared; parity_test.py: Gaps looks that it still differs, so that what was learnt leaves
the list.
"""

# Variables of all workers, in all cases.
VARIABLES = {
    "TORCHELASTIC_USE_AGENT_STORE": "the agent doesn't serve PyTorch's store yet",
    "MASTER_PORT": "in the static layout the given port is the rendezvous' alone until the agent serves the store",
}


# {case: {fact: what is missing}}
GAPS = {}
