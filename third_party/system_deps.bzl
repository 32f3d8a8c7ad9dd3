"""Libraries of the operating system as cc_library targets, by pkg-config."""

def _pkg_config(rctx, args):
    tool = rctx.which("pkg-config")
    if tool == None:
        fail("pkg-config is not installed (apt-get install pkg-config)")
    result = rctx.execute([tool] + args)
    if result.return_code != 0:
        fail("pkg-config %s failed: %s" % (" ".join(args), result.stderr))
    return [f for f in result.stdout.strip().split(" ") if f]

def _last_of_each(libs):
    """Drops earlier repeats: for libraries the last place is the one that counts."""
    seen = {}
    out = []
    for flag in reversed(libs):
        grouping = flag.startswith("-Wl,")
        if grouping or flag not in seen:
            seen[flag] = True
            out.append(flag)
    return reversed(out)

_TARGET = """
cc_library(
    name = "{name}",
    defines = {defines},
    linkopts = {linkopts},
)
"""

def _static_group(rctx, libs):
    absl = [f for f in _pkg_config(rctx, ["--static", "--libs", "grpc++"]) if f.startswith("-labsl_")]
    return (["-Wl,--start-group", "-Wl,-Bstatic"] + libs + _last_of_each(libs = absl) +
            ["-Wl,-Bdynamic", "-Wl,--end-group", "-ldl", "-lpthread", "-lrt"])

def _select_static(static, shared):
    return "select({\":static\": %s, \"//conditions:default\": %s})" % (repr(static), repr(shared))

def _system_deps_impl(rctx):
    build = ["""package(default_visibility = ["//visibility:public"])

# --define=system_libs=static
config_setting(
    name = "static",
    define_values = {"system_libs": "static"},
)
"""]
    for name, modules in sorted(rctx.attr.packages.items()):
        cflags = _pkg_config(rctx, ["--cflags"] + modules)
        defines = [f[2:] for f in cflags if f.startswith("-D")]
        linkopts = _last_of_each(_pkg_config(rctx, ["--libs"] + modules))
        if name == "protobuf":
            value = _select_static(["-l:libprotobuf.a"], linkopts)
        elif name.startswith("absl_"):
            value = _select_static(_static_group(rctx, [f for f in linkopts if f.startswith("-labsl_")]), linkopts)
        else:
            value = repr(linkopts)
        build.append(_TARGET.format(name = name, defines = repr(defines), linkopts = value))
    for name, linkopts in sorted(rctx.attr.extra_linkopts.items()):
        static = rctx.attr.static_linkopts.get(name)
        value = _select_static(_static_group(rctx, static), linkopts) if static else repr(linkopts)
        build.append(_TARGET.format(name = name, defines = "[]", linkopts = value))

    for name, folder in sorted(rctx.attr.include_dirs.items()):
        rctx.symlink(folder, name)
        build.append("""
cc_library(
    name = "{name}",
    hdrs = glob(["{name}/**"], exclude_directories = 1),
    includes = ["{name}"],
)
""".format(name = name))

    # Header-only: Debian has no libspdlog.a or libfmt.a, and one way to build is enough.
    build.append("""
cc_library(
    name = "spdlog",
    defines = ["SPDLOG_FMT_EXTERNAL", "FMT_HEADER_ONLY"],
    linkopts = ["-lpthread"],
)
""")
    rctx.file("BUILD", "".join(build))

system_deps = repository_rule(
    implementation = _system_deps_impl,
    attrs = {
        "packages": attr.string_list_dict(),
        "extra_linkopts": attr.string_list_dict(),
        "static_linkopts": attr.string_list_dict(),
        "include_dirs": attr.string_dict(),
    },
    configure = True,
    environ = ["PATH", "PKG_CONFIG_PATH"],
    local = True,
)
