"""Stand-ins for the repositories that Bazel 4.2.3 itself would download.

@bazel_tools loads @rules_cc, @rules_java and @rules_proto from the network,
even for a plain cc_binary.  All that it takes from them is the names of rules
that this Bazel has built in, so a generated file that re-exports those is
enough.  Bazel declares these repositories with maybe(), so ours, which the
WORKSPACE names first, win.
"""

_RULES = {
    "rules_cc": ("cc", [
        "cc_binary",
        "cc_import",
        "cc_library",
        "cc_proto_library",
        "cc_test",
        "cc_toolchain",
        "cc_toolchain_suite",
        "fdo_profile",
        "objc_library",
    ]),
    "rules_java": ("java", [
        "java_binary",
        "java_import",
        "java_library",
        "java_package_configuration",
        "java_plugin",
        "java_proto_library",
        "java_runtime",
        "java_test",
        "java_toolchain",
    ]),
    "rules_proto": ("proto", [
        "proto_lang_toolchain",
        "proto_library",
    ]),
}

def _native_rules_impl(rctx):
    package, rules = _RULES[rctx.name]
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name)
    rctx.file("BUILD", "")
    rctx.file(package + "/BUILD", "")
    rctx.file(
        package + "/defs.bzl",
        "".join(["%s = native.%s\n" % (r, r) for r in rules]),
    )

_native_rules = repository_rule(implementation = _native_rules_impl)

def _coverage_tools_impl(rctx):
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name)
    rctx.symlink(rctx.attr.merger, "lcov_merger.py")
    rctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])

[sh_binary(name = n, srcs = ["lcov_merger.py"]) for n in ["coverage_report_generator", "lcov_merger"]]
""")

_coverage_tools = repository_rule(
    implementation = _coverage_tools_impl,
    attrs = {"merger": attr.label(default = "//third_party:lcov_merger.py")},
)

def offline_repositories():
    """Declares the local stand-ins; call it first in the WORKSPACE."""
    for name in _RULES:
        _native_rules(name = name)
    _coverage_tools(name = "remote_coverage_tools")
