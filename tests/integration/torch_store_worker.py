"""One of two ranks that ask muster's store and PyTorch's own server the same and compare the answers.

Each test below is run against both with the same two clients; what a call returns, or how it fails,
must be equal. A call that this version of PyTorch doesn't have fails the same way on both.
"""
import os
import sys
import time
from datetime import timedelta

import torch.distributed as dist

RANK = int(os.environ["RANK"])
SHORT = timedelta(milliseconds=300)
LONG = timedelta(seconds=60)


def client(host, port):
    return dist.TCPStore(host, port, None, False, LONG, wait_for_workers=False)


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except Exception as error:  # pylint: disable=broad-except
        return type(error).__name__


def ask(store, name, *arguments):
    """The answer, or how the call fails: also where this version of PyTorch has no such call."""
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
    found = outcome(lambda: sorted(store.list_keys()))
    return [store.num_keys(), found]


def answers(store):
    found = list(single(store))
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
    print("rank %d: %d answers, %d differ" % (RANK, len(got), differ))
    sys.exit(1 if differ else 0)


main()
