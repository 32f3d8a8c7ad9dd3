"""C++ code from .proto files, by the system's protoc and grpc_cpp_plugin."""

def cc_grpc_library(name, srcs, deps = [], grpc = True, **kwargs):
    """Generates and compiles C++ for .proto files of this package.

    Args:
      name: the cc_library's name; include "<package>/<file>.pb.h".
      srcs: .proto files of this package.
      deps: other cc_grpc_library targets whose .proto files these import.
      grpc: whether to generate services as well.
      **kwargs: passed on to the cc_library.
    """
    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [d + "_protos" for d in deps],
        visibility = ["//visibility:public"],
    )
    kinds = [".pb"] + ([".grpc.pb"] if grpc else [])
    stems = [s[:-len(".proto")] for s in srcs]
    headers = [s + k + ".h" for s in stems for k in kinds]
    sources = [s + k + ".cc" for s in stems for k in kinds]
    native.genrule(
        name = name + "_gen",
        srcs = [name + "_protos"],
        outs = headers + sources,
        cmd = " ".join(
            ["protoc", "-I.", "--cpp_out=$(GENDIR)"] +
            (["--grpc_out=$(GENDIR)", "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin)"] if grpc else []) +
            ["$(execpath %s)" % s for s in srcs],
        ),
        tools = srcs,
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-w"],
        deps = deps + ["@sys//:grpc" if grpc else "@sys//:protobuf"],
        **kwargs
    )
