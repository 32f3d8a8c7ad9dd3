"""One of two ranks that ask muster's store and PyTorch's own server the same and compare the answers.

Each test below is run against both with the same two clients; what a call returns, or how it fails,
must be equal. A call that this version of PyTorch doesn't have fails the same way on both; one that it
has and that is never asked is a fault.
"""
import os
import sys
import time
from datetime import timedelta

import torch.distributed as dist

RANK = int(os.environ["RANK"])
SHORT = timedelta(milliseconds=300)
LONG = timedelta(seconds=60)
# Where a client is connected to, and by what: no questions to a server.
NO_QUESTIONS = {"host", "port", "libuvBackend"}
asked = set()


def client(host, port):
    return dist.TCPStore(host, port, None, False, LONG, wait_for_workers=False)


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except Exception as error:  # pylint: disable=broad-except
        return type(error).__name__


def ask(store, name, *arguments):
    """The answer, or how the call fails: also where this version of PyTorch has no such call."""
    asked.add(name)
    return outcome(lambda: getattr(store, name)(*arguments))


def meet(store, name):
    """Both ranks are here. By calls that every version has."""
    store.set("%s/%d" % (name, RANK), "here")
    store.wait(["%s/0" % name, "%s/1" % name], LONG)


# ---- what one rank asks alone ---------------------------------------------------------------

def single(store):
    key = "single%d" % RANK
    yield "set", ask(store, "set", key, "value")
    yield "get", ask(store, "get", key)
    yield "set again", ask(store, "set", key, "")
    yield "get what is empty", ask(store, "get", key)
    yield "a large value", ask(store, "set", key + "large", "x" * 3000000)
    yield "a large value comes back", len(store.get(key + "large"))
    yield "a key in unicode", [ask(store, "set", key + "ä€", "ü"), ask(store, "get", key + "ä€")]
    yield "add", [ask(store, "add", key + "n", i) for i in (5, -7, 0, 1 << 40)]
    yield "add shows as text", ask(store, "get", key + "n")
    yield "a number that was set", [ask(store, "set", key + "m", "41"), ask(store, "add", key + "m", 1)]
    yield "compare_set", [ask(store, "compare_set", key + "c", *pair) for pair in
                          (("wrong", "x"), ("", "first"), ("wrong", "x"), ("first", "second"))]
    yield "compare_set leaves", ask(store, "get", key + "c")
    yield "delete_key", [ask(store, "delete_key", key + "c") for _ in range(2)]
    yield "wait for what is there", ask(store, "wait", [key, key + "n"], SHORT)
    yield "wait in vain", ask(store, "wait", [key, "nobody sets this"], SHORT)
    yield "after a wait in vain", ask(store, "get", key)
    yield "check", [ask(store, "check", keys) for keys in ([key], [key, "missing"], [])]
    yield "append", [ask(store, "append", key + "a", text) for text in ("one", "two")]
    yield "append leaves", outcome(lambda: store.get(key + "a") if hasattr(store, "append") else None)
    yield "multi_set", ask(store, "multi_set", [key + "x", key + "y"], ["1", "22"])
    yield "multi_get", ask(store, "multi_get", [key + "y", key + "x"])
    yield "queue", [ask(store, "queue_push", key + "q", text) for text in ("1", "22")]
    yield "queue_len", ask(store, "queue_len", key + "q")
    yield "queue_pop", [ask(store, "queue_pop", key + "q", False) for _ in range(3)]
    yield "a queue is no key", ask(store, "check", [key + "q"])
    yield "barrier of one", ask(store, "barrier", key + "b", 1, SHORT)
    yield "barrier in vain", ask(store, "barrier", key + "v", 2, SHORT)


def in_vain(store):
    """What waits until the store's own time-out for what never comes."""
    key = "vain%d" % RANK
    yield "timeout", store.timeout
    yield "set_timeout", ask(store, "set_timeout", SHORT)
    yield "get in vain", ask(store, "get", key)
    yield "wait in vain, by the store's time-out", ask(store, "wait", [key])
    yield "multi_get in vain", ask(store, "multi_get", [key, key + "2"])
    yield "queue_pop in vain", ask(store, "queue_pop", key)
    # Of another key: where one was waited for in vain, PyTorch's own server up to 2.0 answers once too often.
    yield "after all that", [ask(store, "set", key + "3", "value"), ask(store, "get", key + "3")]
    yield "set_timeout back", [ask(store, "set_timeout", LONG), store.timeout]
    asked.add("timeout")


def unusual(store):
    key = "unusual%d" % RANK
    yield "nothing to wait for", ask(store, "wait", [], SHORT)
    yield "several of nothing", [ask(store, "multi_get", []), ask(store, "multi_set", [], [])]
    yield "a key without letters", [ask(store, "set", key + "\n\x00 ", "v"), ask(store, "get", key + "\n\x00 ")]
    yield "bytes that are no text", [ask(store, "set", key + "z", "a\x00b\n"), ask(store, "get", key + "z")]
    yield "the same key twice", [ask(store, "multi_set", [key + "t"] * 2, ["1", "2"]),
                                 ask(store, "multi_get", [key + "t"] * 2), ask(store, "check", [key + "z"] * 2),
                                 ask(store, "wait", [key + "z"] * 2, SHORT)]
    yield "a key again after its end", [ask(store, "set", key, "1"), ask(store, "delete_key", key),
                                        ask(store, "check", [key]), ask(store, "add", key, 3), ask(store, "get", key)]
    yield "append to a number", [ask(store, "append", key, "4"), ask(store, "add", key, 1)]
    yield "a queue and a key of one name", [ask(store, "queue_push", key, "in line"), ask(store, "get", key),
                                            ask(store, "delete_key", key), ask(store, "queue_len", key),
                                            ask(store, "check", [key]), ask(store, "queue_pop", key)]
    yield "a queue is waited for", [ask(store, "queue_push", key + "q", ""), ask(store, "wait", [key + "q"], SHORT),
                                    ask(store, "queue_pop", key + "q"), ask(store, "queue_len", key + "q")]
    yield "compare_set to nothing", [ask(store, "compare_set", key + "c", "", ""),
                                     ask(store, "compare_set", key + "c", "", "x")]
    yield "has_extended_api", ask(store, "has_extended_api")


def cloned(store):
    """Two connections see the same, and neither waits for the other."""
    other = ask(store, "clone")
    if isinstance(other, str):
        return other
    key = "cloned%d" % RANK
    first = other.queue_pop(key, False) if store.queue_len(key) else "empty"
    store.queue_push(key, "by one")
    other.set(key + "k", "by the other")
    return [type(other).__name__, first, other.queue_pop(key), store.get(key + "k"), store.queue_len(key)]


def prefixed(store):
    """Behind two prefixes: as groups use it."""
    inner = dist.PrefixStore("inner%d" % RANK, store)
    outer = dist.PrefixStore("outer", inner)
    yield "behind prefixes", [
        ask(outer, "set", "k", "v"), ask(outer, "get", "k"), ask(inner, "get", "outer/k"),
        ask(store, "get", "inner%d/outer/k" % RANK), ask(outer, "add", "n", 2), ask(outer, "wait", ["k", "n"], SHORT),
        ask(outer, "wait", ["no"], SHORT), ask(outer, "compare_set", "k", "v", "w"), ask(outer, "check", ["k"]),
        ask(outer, "append", "k", "x"), ask(outer, "multi_set", ["a", "b"], ["1", "2"]),
        ask(outer, "multi_get", ["a", "b", "n"]), ask(outer, "queue_push", "q", "1"), ask(outer, "queue_len", "q"),
        ask(inner, "queue_pop", "outer/q"), ask(outer, "delete_key", "k"), ask(inner, "check", ["outer/k"]),
        ask(outer, "has_extended_api"), ask(outer, "barrier", "all", 1, SHORT)]


def alone(store):
    for questions in (single, in_vain, unusual, prefixed):
        yield from questions(store)
    yield "clone", cloned(store)


# ---- what both ask together -----------------------------------------------------------------

def waits_for_the_other(store):
    if RANK == 0:
        time.sleep(0.05)
        store.set("from rank 0", "a word")
    return [ask(store, "wait", ["from rank 0"], LONG), store.get("from rank 0")]


def blocks_in_get(store):
    if RANK == 1:
        store.set("late", "value")
    return store.get("late")


def counts_together(store):
    for _ in range(100):
        store.add("together", 1)
    meet(store, "counted")
    return store.get("together")


def one_wins(store):
    won = store.compare_set("winner", "", "rank %d" % RANK)
    meet(store, "has won")
    return won == store.get("winner")


def hands_over(store):
    if not hasattr(store, "queue_push"):
        return None
    if RANK == 0:
        for i in range(10):
            store.queue_push("work", str(i))
        meet(store, "handed over")
        return store.queue_len("work")
    got = [store.queue_pop("work") for _ in range(10)]
    meet(store, "handed over")
    return got


def passes_barriers(store):
    if not hasattr(store, "barrier"):
        return None
    return [ask(store, "barrier", "all", 2, LONG) for _ in range(2)]


TOGETHER = [waits_for_the_other, blocks_in_get, counts_together, one_wins, hands_over, passes_barriers]


def lists(store):
    """Rank 0 alone, with nothing under way: what is there now."""
    found = ask(store, "list_keys")
    behind = ask(dist.PrefixStore("inner0", store), "list_keys")
    return [ask(store, "num_keys"), ask(dist.PrefixStore("inner0", store), "num_keys"),
            [sorted(keys) if isinstance(keys, list) else keys for keys in (found, behind)]]


def answers(store):
    found = list(alone(store))
    for together in TOGETHER:
        meet(store, together.__name__)
        found.append((together.__name__, together(store)))
    meet(store, "all")
    if RANK == 0:
        found.append(("lists", lists(store)))
        store.set("listed", "")
    store.wait(["listed"], LONG)
    return found


def port_of(server):
    """Told by a file, so that both stores see the same keys."""
    if server:
        with open("port.new", "w") as file:
            file.write(str(server.port))
        os.rename("port.new", "port")
    while not os.path.exists("port"):
        time.sleep(0.01)
    with open("port") as file:
        return int(file.read())


def main():
    server = None
    if RANK == 0:
        server = dist.TCPStore("127.0.0.1", 0, None, True, LONG, wait_for_workers=False)
    reference = answers(client("127.0.0.1", port_of(server)))
    ours = client(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    got = answers(ours)
    differ = 0
    for (what, expected), (_, actual) in zip(reference, got):
        if expected != actual:
            differ += 1
            print("rank %d: %s: PyTorch's own says %r, muster's %r" % (RANK, what, expected, actual))
    # Rank 0 lists for both.
    asked.update(("list_keys", "num_keys"))
    forgotten = {name for name in dir(dist.TCPStore) if not name.startswith("_")} - asked - NO_QUESTIONS
    if forgotten:
        print("rank %d: never asked: %s" % (RANK, ", ".join(sorted(forgotten))))
    print("rank %d: %d answers, %d differ" % (RANK, len(got), differ))
    sys.exit(1 if differ or forgotten else 0)


main()
