"""A worker that imports torch and does nothing with it."""
import torch  # noqa: F401
