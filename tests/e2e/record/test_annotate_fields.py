# SPDX-License-Identifier: Apache-2.0
"""The fields and texts of krait.mark and span: values and names of all kinds, the short way and the long."""

import json
import subprocess

import pytest

from annotated import said  # noqa: F401  (a fixture)


def test_fields_are_the_same_the_short_way_and_the_long(said, python):  # noqa: F811
    events = said(
        python,
        """
        import krait
        class Text(str): pass
        class Number(int): pass
        krait.mark("m", a=1, b=-5, c=2**63, d=-2**63, e=10**40, f=None, g=True, h=False, i='q"\\\\\\n\\x01', j="é\\U0001f40d", k="x" * 128, l="y" * 129,
                   m="a\\0b", n="\\ud800", o=Text("sub"), p=Number(7), q=1.5, r=float("nan"), s=[], t={}, u=b"b", **{"odd key \\u00e9\\"": 1})
        krait.mark("many", **{"k%03d" % n: n for n in range(500)}, last="z" * 400)
        """,
    )
    first, many = [p["fields"] for e, p in events if e == "user:mark"]
    expected = {"a": 1, "b": -5, "c": 2**63, "d": -(2**63), "e": 10**40, "f": None, "g": True, "h": False, "i": 'q"\\\n\x01', "j": "é\U0001f40d"}
    expected |= {"k": "x" * 128, "l": "y" * 129, "m": "a\\x00b", "n": "\\ud800", "o": "sub", "q": 1.5, "r": "nan", "s": [], "t": {}, "u": "b'b'"}
    assert {k: v for k, v in first.items() if k not in ("p", 'odd key é"')} == expected and first['odd key é"'] == 1
    kept = [k for k in many if k != "…"]
    assert kept == [f"k{n:03d}" for n in range(len(kept))] and len(kept) > 100 and many["…"] == f"[{501 - len(kept)} more]"


FLOATS = """
import random
random.seed(8)
floats = [0.0, -0.0, 1.0, -1.5, 0.001, 0.0005, 1e-5, 5e-324, 0.1 + 0.2, 1 / 3, 123456789012.345, 123456789012.3455, 999999999999.999, 1e12, 1e15,
          1e16, 1e22, 2.0**53, 2.0**53 + 2, 1.7976931348623157e308, 0.3, 100.25]
floats += [random.randrange(10**random.randrange(1, 16)) / 10**random.randrange(6) for _ in range(500)]
floats += [random.uniform(-1, 1) * 10.0**random.randrange(-20, 20) for _ in range(200)]
"""


@pytest.mark.few_pythons
def test_floats_are_written_as_their_repr(said, python, krait):  # noqa: F811
    said(python, f"{FLOATS}\nimport krait\nfor x in floats: krait.mark('f', x=x)\nfor x in floats: print(x)")
    lines = subprocess.run([krait, "cat", "--json", "--filter", 'name == "user:mark"', said.run.path], capture_output=True, text=True, check=True).stdout
    texts = [json.loads(line)["payload"]["fields"] for line in lines.splitlines()]
    assert texts == [f'{{"x":{x}}}' for x in said.run.stdout.split()] and len(texts) > 700


NAMES_OF_ALL_KINDS = """
import krait
class Name(str):
    def __str__(self): raise RuntimeError
    __repr__ = __hash__ = __eq__ = None
class Plain(str): pass
class Number(int):
    def __int__(self): raise RuntimeError
    def __index__(self): raise RuntimeError
    __repr__ = __index__
class Real(float):
    def __float__(self): raise RuntimeError
    def __repr__(self): return "real"
"""


@pytest.mark.few_pythons
def test_names_of_all_kinds_are_the_fields_names(said, python):  # noqa: F811
    names = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "é", "z" * 128, "z" * 129, "é" * 64, "é" * 65, 'q"', "\\", "\n", "\x7f", "\U0001f40d", "with space"]
    odd = {"\0": "\\x00", "n\0": "n\\x00", "\ud800": "\\ud800"}
    events = said(
        python,
        NAMES_OF_ALL_KINDS
        + f"""
for name in {names + list(odd)!a}:
    krait.mark(name, **{{name: name}})
    krait.mark("sub", **{{Plain(name): Name(name), "after": 1}})
    with krait.span("s", **{{name: name}}) as span: span.set(**{{name: name}})
krait.mark("values", i=Number(3), f=Real(1.5), t=True, n=None, big=1 << 64, least=-1 << 63, most=(1 << 63) - 1, inf=float("-inf"))
krait.mark(Name("text"))
""",
    )
    marks = [p for e, p in events if e == "user:mark"]
    for name, (plain, sub) in zip(names + list(odd), zip(marks[::2], marks[1::2])):
        written = odd.get(name, name)
        assert plain["text"] == written and plain["fields"] == {written: written}
        assert sub["fields"] == {written: written, "after": 1}
    assert [p["fields"] for e, p in events if e.startswith("span:")] == [{odd.get(n, n): odd.get(n, n)} for n in names + list(odd) for _ in range(2)]
    values, text = marks[-2:]
    expected = {"i": "<Number>", "f": "real", "t": True, "n": None, "big": 1 << 64, "least": -1 << 63, "most": (1 << 63) - 1, "inf": "-inf"}
    assert values["fields"] == expected and text["text"] == "text"


@pytest.mark.few_pythons
def test_a_mark_keeps_nothing_of_its_fields(said, python):  # noqa: F811
    """Names that are made for each call are of no use to later ones."""
    events = said(
        python,
        """
        import gc, sys, krait
        text, value = "a text" * 3, 1.25
        before = sys.getrefcount(text), sys.getrefcount(value)
        def say(first, last):
            for n in range(first, last):
                krait.mark(text, **{"name %d" % n: n, "é%d" % n: value, "text": text})
                with krait.span("s", **{"name %d" % n: text}): pass
        say(0, 500)
        gc.collect()
        blocks = sys.getallocatedblocks()
        say(500, 20500)
        gc.collect()
        assert sys.getallocatedblocks() - blocks < 200, (blocks, sys.getallocatedblocks())
        assert (sys.getrefcount(text), sys.getrefcount(value)) == before
        """,
    )
    marks = [p["fields"] for e, p in events if e == "user:mark"]
    assert marks == [{f"name {n}": n, f"é{n}": 1.25, "text": "a text" * 3} for n in range(20500)]


LONG = """
import sys, krait
getattr(sys, "set_int_max_str_digits", id)(0)
class Long(int): pass
krait.mark("\\0" * 1024, a=1)
krait.mark("a" * 1000 + "\\0" * 6, a=1)
krait.mark("\u00e9" * 511 + "\\0\u00e9", a="\\0" * 128, b="\\0" * 129)
text = "\u20ac" * 100000
before = sys.getsizeof(text)
krait.mark(text, text=text)
assert sys.getsizeof(text) == before
krait.mark("ints", a=10**5000, b=-10**5000, c=Long(10**5000), d=[10**5000], e=10**4299 > 0)
krait.mark(10**5000)
krait.mark("bytes", a=b"\\0" * 100000, b=bytearray(b"x" * 100000))
krait.mark("bytes", a=[b"y" * 513], b=b"z" * 505)
krait.mark(b"a" * 2000)
"""


@pytest.mark.every_python
def test_long_values_take_little_time_and_memory(said, python):  # noqa: F811
    marks = [p for e, p in said(python, LONG) if e == "user:mark"]
    assert [m["text"] for m in marks[:3]] == [
        "\\x00" * 256 + "… [cut: 1024 characters]",
        "a" * 1000 + "\\x00" * 6,
        "é" * 511 + "… [cut: 513 characters]",
    ]
    assert [m["fields"] for m in marks[:3]] == [{"a": 1}, {"a": 1}, {"a": "\\x00" * 128, "b": "\\x00" * 128 + "… [cut: 129 characters]"}]
    assert marks[3]["text"] == "€" * 341 + "… [cut: 100000 characters]"
    assert marks[4]["fields"] == {"a": "<int>", "b": "<int>", "c": "<Long>", "d": ["<int>"], "e": True} and marks[5]["text"] == "<int>"
    nuls = "b'" + "\\x00" * 127 + "\\x"
    assert marks[6]["fields"] == {"a": nuls + "… [cut: 100000 bytes]", "b": "bytearray(b'" + "x" * 500 + "… [cut: 100000 bytes]"}
    assert marks[7]["fields"] == {"a": ["b'" + "y" * 510 + "… [cut: 513 bytes]"], "b": f"b'{'z' * 505}'"}
    assert marks[8]["text"] == "b'" + "a" * 1022 + "… [cut: 2000 bytes]"


KEYS = """
import krait, krait._agent
class Number(int):
    def __repr__(self): raise RuntimeError
    __str__ = __int__ = __index__ = __repr__
class Real(float):
    def __repr__(self): raise RuntimeError
    __str__ = __float__ = __repr__
class Text(str): pass
getattr(__import__("sys"), "set_int_max_str_digits", id)(0)
keys = {-7: 1, 10**30: 2, 1.5: 3, -1e300: 4, True: 5, False: 6, None: 7, Number(3): 8, Real(2.25): 9, Text("t"): 10,
        float("nan"): 11, float("inf"): 12, float("-inf"): 13}
dropped = {(1, 2): 1, b"b": 2, frozenset(): 3, 1j: 4, object: 5, 10**5000: 6}
krait.mark("m", keys=keys, some={**dropped, "s": 1}, none=dropped, lists=[{2: {None: 1, (): 2}}], empty={})
krait.mark("cut", many={n: n for n in range(40)})
with krait.span("s", keys={1: 2, (): 3}): pass
krait._agent._tell_mark("told", 1, {5: 1, (): 2, "s": {6: 1, b"": 2}})
"""


@pytest.mark.few_pythons
def test_keys_of_dicts_are_those_of_json(said, python):  # noqa: F811
    """As json.dumps writes keys that are no str; what it refuses is counted, as what is too long."""
    mark, cut, span, told = [p["fields"] for e, p in said(python, KEYS) if "fields" in p and e != "span:end"]
    keys = {"-7": 1, str(10**30): 2, "1.5": 3, "-1e+300": 4, "true": 5, "false": 6, "null": 7, "3": 8, "2.25": 9, "t": 10}
    assert mark["keys"] == {**keys, "NaN": 11, "Infinity": 12, "-Infinity": 13}
    assert mark["some"] == {"s": 1, "…": "[6 more]"} and mark["none"] == {"…": "[6 more]"}
    assert mark["lists"] == [{"2": {"null": 1, "…": "[1 more]"}}] and mark["empty"] == {}
    assert cut["many"] == {**{str(n): n for n in range(32)}, "…": "[8 more]"}
    assert span == {"keys": {"1": 2, "…": "[1 more]"}} and told == {"5": 1, "s": {"6": 1, "…": "[1 more]"}, "…": "[1 more]"}
