"""What muster still has to learn of torchrun: {case: {fact: what is missing}}. To be emptied.

A fact that is listed here isn't compared; `GapsTest` looks that it still differs, so that what was learnt leaves the
list.
"""
GAPS = {}
