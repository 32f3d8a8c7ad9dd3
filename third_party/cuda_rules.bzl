"""Compiles .cu files with nvcc where the machine has it."""

load("@cuda//:defs.bzl", "CUDA_FOUND", "CUDA_HOME", "NVCC")

def cuda_library(name, srcs, hdrs = [], deps = [], arch = ["75", "80", "90"], **kwargs):
    """A cc_library of .cu files; empty where CUDA is absent.

    Args:
      name: the library's name.
      srcs: the .cu files.
      hdrs: headers, seen by nvcc and by those who depend on this.
      deps: cc_library targets for the link (not seen by nvcc).
      arch: compute capabilities; PTX is kept for the newest one.
      **kwargs: passed on to the cc_library.
    """
    if not (CUDA_FOUND and NVCC):
        native.cc_library(name = name, hdrs = hdrs, deps = deps, **kwargs)
        return
    gencode = " ".join(["-gencode=arch=compute_%s,code=sm_%s" % (a, a) for a in arch] +
                       ["-gencode=arch=compute_%s,code=compute_%s" % (arch[-1], arch[-1])])
    objects = []
    for src in srcs:
        obj = src[:-len(".cu")] + ".cu.pic.o"
        native.genrule(
            name = name + "_" + src.replace(".", "_"),
            srcs = [src] + hdrs,
            outs = [obj],
            cmd = "%s -c $(execpath %s) -o $@ -std=c++17 -O2 -I. -I$(GENDIR) -I%s/include -Xcompiler -fPIC,-Wall %s" % (NVCC, src, CUDA_HOME, gencode),
            message = "Compiling CUDA",
        )
        objects.append(obj)
    native.cc_library(
        name = name,
        srcs = objects,
        hdrs = hdrs,
        linkstatic = True,
        deps = deps + ["@cuda//:cudart_static"],
        **kwargs
    )

def cuda_test(name, **kwargs):
    """A cc_test that exists only where CUDA was found."""
    if CUDA_FOUND and NVCC:
        native.cc_test(name = name, **kwargs)
