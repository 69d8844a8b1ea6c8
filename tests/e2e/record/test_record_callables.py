# SPDX-License-Identifier: Apache-2.0
"""Which calls are recorded: the same for every kind of callable on every Python (docs/calls.md)."""

import textwrap

import pytest
from recording import ENDS

# What the cases call.
SETUP = """
import functools, operator, threading, types
def plain(*args, **kw): return args
def other(x): return plain(x)
square = lambda x: x * x
def gen():
    yield 1
    yield 2
class Meta(type):
    def __call__(cls, *args): return super().__call__(*args)
    def __new__(meta, *args): return super().__new__(meta, *args)
class ByMeta(metaclass=Meta):
    pass
class Empty:
    pass
class Made:
    def __new__(cls): return super().__new__(cls)
    def __init__(self): pass
class FromC(dict):
    def __init__(self): super().__init__()
class Bare(Exception):
    pass
class Thing:
    def method(self, *args, **kw): return args
    @classmethod
    def of_class(cls, *args): return args
    @staticmethod
    def static(*args): return args
    def __call__(self, *args, **kw): return args
    @property
    def prop(self): return 1
    def __add__(self, x): return 1
    def __getitem__(self, i): return i
    def __len__(self): return 3
    def __enter__(self): return self
    def __exit__(self, *error): return True
    def __iter__(self): return iter(())
    def __getattr__(self, name): return name
    @functools.lru_cache(maxsize=None)
    def cached(self, *args, **kw): return args
class Key:
    def __eq__(self, x): return True
    def __hash__(self): return 1
class Descriptor:
    def __get__(self, obj, cls): return 1
    def __set__(self, obj, value): pass
class Has:
    d = Descriptor()
def wrapping(f):
    @functools.wraps(f)
    def wrapper(*args): return f(*args)
    return wrapper
@wrapping
def wrapped(*args): pass
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
thing, has, key, kept = Thing(), Has(), Key(), gen()
bound, call, slot = thing.method, thing.__call__, (5).__add__
part, part_len = functools.partial(plain, 1), functools.partial(len, [1])
over_c, over_partial = types.MethodType(len, [1]), types.MethodType(part, 1)
over_object, over_class = types.MethodType(thing, 1), types.MethodType(int, 5)
over_cached = thing.cached
like_cython = functools.lru_cache()(square)  # of a type that says of itself that its objects are functions
del like_cython.__wrapped__
over_like_cython = types.MethodType(like_cython, 2)
append, item, lock, text = [].append, operator.itemgetter(0), threading.Lock(), "text"
none, nothing = (), {}
"""

# The case's code, and the calls that are recorded of it: what is called from a call follows in parentheses.
CASES = {
    # functions and methods written in Python
    "function": ("plain(1)", "plain"),
    "function *args": ("plain(*none, **nothing)", "plain"),
    "nested": ("other(1)", "other(plain)"),
    "lambda": ("square(2)", "<lambda>"),
    "method": ("thing.method(1)", "Thing.method"),
    "method *args": ("thing.method(*none, **nothing)", "Thing.method"),
    "bound method": ("bound(1)", "Thing.method"),
    "bound method *args": ("bound(*none)", "Thing.method"),
    "classmethod": ("Thing.of_class(1); thing.of_class(*none)", "Thing.of_class Thing.of_class"),
    "staticmethod": ("thing.static(1); thing.static(*none)", "Thing.static Thing.static"),
    "unbound": ("Thing.method(thing); Thing.method(*(thing,))", "Thing.method Thing.method"),
    "decorator": ("wrapped(1)", "wrapping.<locals>.wrapper(wrapped)"),
    # functions and methods written in C
    "builtin": ("len(text)", "c:len"),
    "builtin *args": ("len(*(text,), **nothing)", "c:len"),
    "builtin keywords": ("sorted(text, reverse=True)", "c:sorted"),
    "builtin that raises": ("len(5)", "c:len"),
    "builtin that calls back": ("sorted([1], key=square)", "c:sorted(<lambda>)"),
    "method in C": ("text.upper()", "c:str.upper"),
    "method in C *args": ("text.upper(*none, **nothing)", "c:str.upper"),
    "method in C keywords": ("text.split(sep='x')", "c:str.split"),
    "bound method in C": ("append(1); append(*(1,))", "c:list.append c:list.append"),
    "unbound in C": ("str.upper(text); str.upper(*(text,))", "c:str.upper c:str.upper"),
    "class method in C": ("dict.fromkeys(text)", "c:dict.fromkeys"),
    "static method in C": ("str.maketrans({})", "c:str.maketrans"),
    "__new__ in C": ("object.__new__(Empty)", "c:object.__new__"),
    # a class that is called is no function of its own: what it runs in Python is
    "class": ("Empty()", ""),
    "class *args": ("Empty(*none)", ""),
    "class with methods": ("Made()", "Made.__new__(c:object.__new__) Made.__init__"),
    "class *args with methods": ("Made(*none)", "Made.__new__(c:object.__new__) Made.__init__"),
    "class from C": ("FromC()", "FromC.__init__"),
    "exception": ("Bare('x')", ""),
    "metaclass": ("ByMeta()", "Meta.__call__"),
    "metaclass call": ("Meta('X', (), {})", "Meta.__new__(c:type.__new__)"),
    "type in C": ("int('5'); dict(a=1); list(text); range(5); set(*none)", ""),
    "type in C that calls back": ("list(gen())", "gen gen gen"),
    "super": ("FromC.__init__({})", "FromC.__init__"),
    # nor is an object that can be called: its __call__ is, where it is written in Python
    "object": ("thing(1)", "Thing.__call__"),
    "object *args": ("thing(*none, **nothing)", "Thing.__call__"),
    "__call__": ("thing.__call__(1); call(*none)", "Thing.__call__ Thing.__call__"),
    "partial": ("part(2)", "plain"),
    "partial *args": ("part(*none)", "plain"),
    "partial of C": ("part_len()", ""),
    "object in C": ("item(text)", ""),
    "lru_cache": ("fib(2)", "fib(fib fib)"),
    "lru_cache method": ("thing.cached(1)", "Thing.cached"),
    "lru_cache method *args": ("thing.cached(*(2,)); thing.cached(*none, a=1)", "Thing.cached Thing.cached"),
    "lru_cache bound method": ("over_cached(3)", "Thing.cached"),
    "method of a partial": ("over_partial(1); over_partial(*none)", "plain plain"),
    "method of an object": ("over_object(1); over_object(*none)", "Thing.__call__ Thing.__call__"),
    "method of a class": ("over_class(); over_class(*none)", ""),
    "method of C *args": ("over_c(*none); over_c(**nothing)", ""),
    # slots
    "operator": ("thing + 1", "Thing.__add__"),
    "subscript": ("thing[1]", "Thing.__getitem__"),
    "compare": ("key == 1", "Key.__eq__"),
    "slot through a function": ("len(thing)", "c:len(Thing.__len__)"),
    "hash": ("{key: 1}", "Key.__hash__"),
    "slot in C": ("1 + 2; text == 'a'; [1][0]", ""),
    "slot wrapper": ("int.__add__(1, 2); object.__repr__(5)", ""),
    "slot wrapper *args": ("int.__add__(*(1, 2))", ""),
    "bound slot wrapper": ("slot(1); slot(*(1,)); text.__len__()", ""),
    "property": ("thing.prop", "Thing.prop"),
    "descriptor": ("has.d", "Descriptor.__get__"),
    "descriptor that is set": ("has.d = 1", "Descriptor.__set__"),
    "__getattr__": ("thing.missing", "Thing.__getattr__"),
    # generators
    "generator": ("for _ in gen(): pass", "gen gen gen"),
    "next": ("next(kept)", "c:next(gen)"),
    "generator expression": ("sum(x for x in none)", "c:sum(X.<locals>.<genexpr>)"),
}

# Where the interpreters themselves differ.
DIFFER = {
    "generator dropped before it began": ("g = gen(); del g", lambda number: "gen" if number < (3, 12) else ""),
    # 3.13's gen_close (Objects/genobject.c) runs no code of a generator that has no handler where it waits
    "generator dropped after it began": ("g = gen(); next(g); del g", lambda number: "c:next(gen)" if number == (3, 13) else "c:next(gen) gen"),
    # PEP 709: a comprehension is part of its function
    "comprehension": ("[x for x in none]", lambda number: "" if number >= (3, 12) else "X.<locals>.<listcomp>"),
    # sys.setprofile, of which krait hears before 3.12, knows builtin functions and methods alone
    "function of a type of its own": ("like_cython(1)", lambda number: "c:<lambda>(<lambda>)" if number >= (3, 12) else "<lambda>"),
    "its bound method": ("over_like_cython()", lambda number: "c:<lambda>(<lambda>)" if number >= (3, 12) else "<lambda>"),
    "its bound method *args": ("like_cython.cache_clear()\nover_like_cython(*none)", lambda number: "c:_lru_cache_wrapper.cache_clear <lambda>"),
    # 3.14's with looks its methods up like calls do
    "with": ("with thing: pass", lambda number: "Thing.__enter__ Thing.__exit__"),
    "with in C": (
        "with lock: pass",
        lambda number: "" if number < (3, 9) else "c:lock.__exit__" if number < (3, 14) else "c:lock.__enter__ c:lock.__exit__",
    ),
}


def program(cases):
    lines = [SETUP]
    for i, (code, _) in enumerate(cases.values()):
        body = code if code.startswith(("for", "with")) else code.replace("; ", "\n")
        lines += [f"def case_{i}():", "    try:", textwrap.indent(body, " " * 8), "    except TypeError: pass", f"case_{i}()"]
    return "\n".join(lines)


def calls_of_cases(recording):
    """For each function case_N, the calls below it as CASES writes them."""
    process = recording.check().main
    found, path = {}, []
    for event in process.threads[0].events:
        if event.name in ENDS:
            name, calls = path.pop()
            text = f"{name}({' '.join(calls)})" if calls else name
            if path:
                path[-1][1].append(text)
            if name.startswith("case_") and name[5:].isdigit():
                found[int(name[5:])] = " ".join(calls)
        elif event.code:
            code = process.codes[event.code]
            path.append((code.qualname if code.kind == "python" else f"c:{code.qualname}", []))
    return found


@pytest.mark.parametrize("options", [(), ("--exclude", "nothing.at.all")], ids=["short", "selective"])
@pytest.mark.every_python
def test_every_kind_of_callable_is_recorded_alike_on_every_python(record, python, options):
    """`selective`: the hooks that look each function up."""
    cases = dict(CASES, **{name: (code, expected(python.number)) for name, (code, expected) in DIFFER.items()})
    found = calls_of_cases(record.text(python, program(cases), options=options))
    wrong = {
        name: (found.get(i), expected.replace("X", f"case_{i}"))
        for i, (name, (_, expected)) in enumerate(cases.items())
        if found.get(i) != expected.replace("X", f"case_{i}")
    }
    assert not wrong, "\n".join(f"{name}: {got!r}, not {expected!r}" for name, (got, expected) in wrong.items())
