"""What muster still has to learn of torchrun. To be emptied.

What is listed here isn't compared; parity_test.py: Gaps looks that it still differs, so that what was learnt leaves
the list.
"""

# Variables of all workers, in all cases.
VARIABLES = {}

# {case: {fact: what is missing}}
GAPS = {}
