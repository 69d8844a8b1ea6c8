# SPDX-License-Identifier: Apache-2.0
"""A program of calls that last some 50 ns, in turns: a() of b(), c() of d(), directly, as generators, through map(). Never is d() below a()."""

LOOPS = ("plain", "generators", "through_c")  # its argument
PAIRS = """
import os, sys
def b(): pass
def d(): pass
def a(): b()
def c(): d()
def ga(): yield b()
def gc(): yield d()
def fa(x): return b()
def fc(x): return d()
def ma(): list(map(fa, (1,)))
def mc(): list(map(fc, (1,)))
def plain():
    while True:
        a()
        c()
def generators():
    while True:
        for _ in ga(): pass
        for _ in gc(): pass
def through_c():
    while True:
        ma()
        mc()
print(os.getpid(), flush=True)
globals()[sys.argv[1]]()
"""
CALLER = {"a": {"plain"}, "c": {"plain"}, "ga": {"generators"}, "gc": {"generators"}, "ma": {"through_c"}, "mc": {"through_c"}}
CALLER.update({"fa": {"ma"}, "fc": {"mc"}, "b": {"a", "ga", "fa"}, "d": {"c", "gc", "fc"}, "<module>": set()})
CALLER.update({loop: {"<module>"} for loop in LOOPS})


# C functions, which samples may show on top.
CALLER.update({"list": {"ma", "mc"}, "map": {"ma", "mc"}, "print": {"<module>"}, "getpid": {"<module>"}, "globals": {"<module>"}})


def never_was(stack):
    """Whether no thread of PAIRS ever had this stack, innermost function first."""
    return any(below not in CALLER[function] for function, below in zip(stack, stack[1:])) or bool(CALLER[stack[-1]])
