"""Finds CUDA and NCCL on this machine, or says that they are not there."""

_FOUND = """
package(default_visibility = ["//visibility:public"])

# -isystem, so that -Wall -Wextra -Werror do not reach NVIDIA's headers.
cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    defines = ["MUSTER_HAVE_CUDA=1"],
)

cc_library(
    name = "cudart",
    srcs = glob(["lib/libcudart.so*"]),
    deps = [":headers"],
)

cc_library(
    name = "cudart_static",
    srcs = ["lib/libcudart_static.a"],
    linkopts = ["-ldl", "-lpthread", "-lrt"],
    deps = [":headers"],
)

cc_library(
    name = "nccl",
    srcs = glob(["lib/libnccl.so*"]),
    deps = [":cudart"],
)
"""

_MISSING = """
package(default_visibility = ["//visibility:public"])

[cc_library(name = n) for n in ["headers", "cudart", "cudart_static", "nccl"]]
"""

def _cuda_configure_impl(rctx):
    home = rctx.os.environ.get("CUDA_HOME") or rctx.os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    root = rctx.path(home)
    found = (
        root.get_child("include").get_child("cuda_runtime.h").exists and
        root.get_child("include").get_child("nccl.h").exists and
        rctx.os.environ.get("MUSTER_CUDA", "auto") != "off"
    )
    nvcc = root.get_child("bin").get_child("nvcc")
    if found:
        rctx.symlink(root.get_child("include"), "include")
        lib = root.get_child("lib64") if root.get_child("lib64").exists else root.get_child("lib")
        for name in ["libcudart.so", "libcudart.so.13", "libcudart_static.a", "libnccl.so", "libnccl.so.2"]:
            if lib.get_child(name).exists:
                rctx.symlink(lib.get_child(name), "lib/" + name)
    rctx.file("BUILD", _FOUND if found else _MISSING)
    rctx.file("defs.bzl", "CUDA_FOUND = %s\nNVCC = %s\nCUDA_HOME = %s\n" % (
        repr(found),
        repr(str(nvcc) if found and nvcc.exists else ""),
        repr(str(root) if found else ""),
    ))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    configure = True,
    environ = ["CUDA_HOME", "CUDA_PATH", "MUSTER_CUDA"],
    local = True,
)
