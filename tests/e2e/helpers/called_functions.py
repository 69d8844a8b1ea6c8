# SPDX-License-Identifier: Apache-2.0
"""A program whose lines name the C functions that they call, behind `#:`. It calls them in all ways, and what they return are often
functions too. It runs for as many seconds as its argument says.
"""

import contextvars
import functools
import gc
import math
import operator
import os
import re
import sys
import threading
import time

X = list(range(300))
WORDS = [str(i) for i in X]
TABLE = {"get": {}.get, "len": len, "pop": [].pop, "sorted": sorted, "type": type}
OBJECTS = {1: len, 2: sorted, 3: math.factorial, 4: str.join, 5: list.append, 6: int}
big = {"a": 1, "key": None}
NAMED = {"get": contextvars.ContextVar("v").get}
get = NAMED.get
alias = sorted
find = re.compile("x+y").match
fact = math.factorial


class Number:
    def __init__(self, n):
        self.n = n
        self.call = math.factorial

    def twice(self):
        return self.n * 2

    def __len__(self):
        return sum(X)  #: sum

    def __del__(self):
        keep.append([].append)  #: list.append
        keep.clear()  #: list.clear


keep = []


class Sub(list):
    def both(self, x):
        super().append(x)  #: super list.append
        self.extend(X)  #: list.extend
        return self.pop()  #: list.pop


def nested(x):
    a = len(sorted(x)) + sum(sorted(x, reverse=True))  #: len sorted sum
    b = (1, [2, {3: (4, math.factorial(50))}], len(x), str.join(",", WORDS))  #: math.factorial len str.join
    c = [1, 2, 3, max(x), min(x), ",".join(WORDS), [sum(x), sum(x)]]  #: max min str.join sum
    d = len([sum(x), len(x), len(sorted(x)), sorted(x, key=None), "-".join(sorted(WORDS))])  #: len sum sorted str.join
    e = sum([len(x) if a else sum(x), max(x) and min(x), sum(x) or len(x)])  #: sum len max min
    return a, b, c, d, e


def keywords(x):
    a = sorted(x, reverse=True)  #: sorted
    b = sorted(x, key=abs, reverse=False)  #: sorted
    c = max(*x, default=0, key=None) if 0 else max(x, default=0)  #: max
    d = int("12", base=16) + sum(x, start=0) if sys.version_info > (3, 8) else 0  #: int sum
    e = dict(b=2, **big)  #: dict
    f = print(*x, sep="", end="", file=sink)  #: print
    return a, b, c, d, e, f


def star(x, args=(X,), kwargs={"reverse": True}):
    a = sorted(*args)  #: sorted
    b = sorted(*args, **kwargs)  #: sorted
    c = max(*x)  #: max
    d = math.gcd(*(12, 18)) + len(*args)  #: math.gcd len
    e = "{}{a}".format(*x, **big)  #: str.format
    f = [].append(*args)  #: list.append
    return a, b, c, d, e, f


def blocks(x):
    for i in range(3):  #: range
        try:
            with lock:  #: lock.__enter__ lock.__exit__
                for j in sorted(x):  #: sorted
                    if j > 3:
                        break
                a = sum(x)  #: sum
            b = max(x)  #: max
            int("x")  #: int
        except ValueError:
            c = min(x)  #: min
            try:
                [].pop()  #: list.pop
            except IndexError as error:
                d = sorted(x)  #: sorted
                e = str(error)  #: str
            finally:
                f = len(sorted(x))  #: len sorted
        finally:
            g = sum(sorted(x))  #: sum sorted
            try:
                h = max(x)  #: max
            finally:
                k = min(x)  #: min
        try:
            m = sum(x)  #: sum
            if i == 1:
                continue
            if i == 2:
                return len(sorted(x))  #: len sorted
        finally:
            n = max(sorted(x))  #: max sorted
    return a, b, c, d, e, f, g, h, k, m, n


def comprehensions(x):
    a = [len(sorted(x)) for i in (1, 2, 3)]  #: len sorted
    b = {sum(x): max(x) for i in (1, 2)}  #: sum max
    c = sum([min(x) for i in (1, 2) if sum(x)])  #: sum min
    d = [sorted(y) for y in [[len(x), max(x)] for i in (1, 2)] if len(y)]  #: sorted len max
    e = sorted([i for i in x], key=[len, sum, None][2])  #: sorted
    return a, b, c, d, e


def generator(x):
    yield sum(x)  #: sum
    for i in sorted(x)[:2]:  #: sorted
        y = yield max(x)  #: max
        z = [len(x), (yield min(x)), sum(x)]  #: len min sum
    yield from reversed(sorted(x)[:3])  #: reversed sorted


def use(x):
    a = list(generator(x))  #: list
    b = sum(i for i in x)  #: sum
    c = tuple(map(str, x))  #: tuple map
    return a, b, c


# What calls return are functions: they may lie where the callable was, but are not called.
def results(x):
    a = getattr(x, "append")  #: getattr
    b = type(len)  #: type
    c = type(x)  #: type
    d = TABLE.get("len")  #: dict.get
    e = TABLE.get("sorted", len)  #: dict.get
    f = OBJECTS.pop(1, None)  #: dict.pop
    g = OBJECTS.setdefault(1, len)  #: dict.setdefault
    h = [list.append, list.extend, len].pop()  #: list.pop
    i = [len, sorted, list.append].pop()  #: list.pop
    j = max((sum, len), key=id)  #: max
    k = operator.itemgetter("type")(TABLE)  #: itemgetter
    m = functools.partial(len, x)()  #: partial
    n = [str.join, str.upper, int].pop(0)  #: list.pop
    o = getattr(str, "join")  #: getattr
    p = x.__getattribute__("append")  #: list.__getattribute__
    q = next(iter([len, sorted]))  #: next iter
    r = functools.reduce(max, [1, 2])  #: reduce _functools.reduce functools.reduce
    s = vars(operator).get("add")  #: vars dict.get
    t = OBJECTS.get(6)  #: dict.get
    u = (len if a else sorted)(x)  #: len sorted
    v = TABLE["sorted"](x)  #: sorted
    w = globals().get("alias")  #: globals dict.get
    return a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, r, s, t, u, v, w


# Arguments that are closed, or run Python, when the call has returned: its result may then lie where the callable was.
def dying(x):
    a = TABLE.get(open("/dev/null"), sorted)  #: dict.get open
    b = {}.setdefault(open("/dev/null"), len)  #: dict.setdefault open
    c = getattr(open("/dev/null"), "absent", sorted)  #: getattr open
    d = TABLE.get(Number(1), sorted)  #: dict.get
    e = functools.partial(getattr, x, "append", open("/dev/null"))()  #: partial open
    return a, b, c, d, e


# The name by which it calls is that of the result, which is another type's.
def same_names(x):
    a = get("get")  #: dict.get
    b = get("pop", {}.pop)  #: dict.get
    c = NAMED.get(*["get"])  #: dict.get
    d = NAMED.get(*[open("/dev/null"), NAMED["get"]])  #: dict.get open
    e = get(open("/dev/null"), NAMED["get"])  #: dict.get open
    return a, b, c, d, e


# The call sets the variable from which the callable came to its result.
def shared(x):
    f = max

    def key(value):
        nonlocal f
        f = len
        return 1

    f((len, open("/dev/null")), key=key)  #: max open
    return f(x)  #: len


def locals_of(x):
    f = sorted
    f(x)  #: sorted
    g = len
    g(f(x))  #: len sorted
    f = g
    f(x)  #: len
    f = (lambda y: y)(sum)
    f(x)  #: sum
    append = [].append
    append(x)  #: list.append
    fact(40)  #: math.factorial
    alias(x)  #: sorted
    find("xxxx")  #: re.Pattern.match Pattern.match

    def inner():
        return f(x), append(g(x))  #: sum list.append len

    return inner()


def objects(x):
    n = Number(4)
    n.twice()
    a = n.call(30)  #: math.factorial
    b = len(n)  #: len
    s = Sub(x)
    s.both(3)
    s.append(len(x))  #: list.append len
    c = s.index(250)  #: list.index
    d = "a,b".split(",")  #: str.split
    e = {}.get(len(x), sorted(x))  #: dict.get len sorted
    f = find.__call__("xxy")
    g = re.sub("a", "b", "abc")
    h = gc.collect(0)  #: gc.collect
    i = len([Number(1), Number(2)])  #: len
    k = b"".join([b"a"] * 9).decode()  #: bytes.join bytes.decode
    m = dict.fromkeys(x)  #: dict.fromkeys
    return a, b, c, d, e, f, g, h, i, k, m


class Sink:
    def write(self, text):
        pass


def long_arguments(x):
    return len(list(range(20000))), sum(tuple(range(3000))), sorted([len(x)] * 4000)  #: len list range sum tuple sorted


def sleeps():
    time.sleep(0.0001)  #: time.sleep
    return [1, 2, time.sleep(0.0001), len(X)]  #: time.sleep len


FUNCTIONS = [nested, keywords, star, blocks, comprehensions, use, results, dying, same_names, shared, locals_of, objects]
END = time.time() + float(sys.argv[1])
sink = Sink()
lock = threading.Lock()


def run():
    while time.time() < END:  #: time.time
        for f in (*FUNCTIONS, long_arguments):
            f(X[:])
        sleeps()


def fight():
    while time.time() < END:  #: time.time
        sum(X)  #: sum


sys.setswitchinterval(0.0005)
threading.Thread(target=fight).start()
print(os.getpid(), flush=True)
run()
