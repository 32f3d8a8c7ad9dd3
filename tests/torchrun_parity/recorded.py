"""torchrun's answers, as files beside this one: torchrun_MAJOR_MINOR.json, made by `live.py --record`."""
import json
import os
import platform
import re

HERE = os.path.dirname(os.path.abspath(__file__))


def path_of(version):
    return os.path.join(HERE, "torchrun_%d_%d.json" % version[:2])


def read(path):
    with open(path) as file:
        return json.load(file)["cases"]


def versions():
    """Those of which there is a file, oldest first."""
    found = (re.match(r"torchrun_(\d+)_(\d+)\.json$", name) for name in os.listdir(HERE))
    return sorted((int(m[1]), int(m[2])) for m in found if m)


def write(path, launcher, answers, keep):
    """One fact a line, so that a change of an answer is a change of a line."""
    if keep and os.path.exists(path):
        answers = {**read(path), **answers}
    about = {"torch": launcher.text, "python": platform.python_version() if launcher.is_repaired else "its own",
             "note": launcher.about()}
    lines = ["{", ' "about": %s,' % json.dumps(about), ' "cases": {']
    for i, (name, facts) in enumerate(sorted(answers.items())):
        lines.append("  %s: {" % json.dumps(name))
        rows = ["   %s: %s" % (json.dumps(fact), json.dumps(value, sort_keys=True)) for fact, value in facts.items()]
        lines.append(",\n".join(rows))
        lines.append("  }" + ("," if i + 1 < len(answers) else ""))
    lines += [" }", "}"]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
