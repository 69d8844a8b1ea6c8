# SPDX-License-Identifier: Apache-2.0
"""What functions written in C are called, and that asking runs none of the program's code."""


def test_c_functions_are_named_after_the_class_that_defines_them(record, python):
    run = record.text(
        python,
        """
        class L(list): pass
        class D(dict): pass
        f = L().append; f(1)
        f = [].append; f(2)
        f = D().update; f({})
        for cls in (int, object, tuple, int, D):
            f = cls.__new__; f(cls)
        f = dict.fromkeys; f([])
        f = D.fromkeys; f([])
        f = str.maketrans; f({})
        """,
    ).check()
    calls = {(c.module, c.qualname): 0 for c in run.main.codes.values()}
    for thread in run.main.threads:
        for e in thread.events:
            if e.name == "c:call":
                code = run.main.codes[e.code]
                calls[code.module, code.qualname] += 1
    assert ("__main__", "L.append") not in calls and ("__main__", "D.fromkeys") not in calls
    for name in "list.append", "dict.update", "int.__new__", "object.__new__", "tuple.__new__", "dict.fromkeys", "str.maketrans":
        assert calls["builtins", name] > 0, name


def test_naming_runs_no_code_of_metaclasses(record, python):
    run = record.text(
        python,
        """
        asked = []
        class Meta(type):
            def __getattribute__(cls, name):
                asked.append(name)
                raise KeyboardInterrupt
        class D(dict, metaclass=Meta): pass
        def go():
            f = D().update
            f({})
        go()
        print(asked)
        """,
    ).check()
    assert run.stdout.strip() == "[]"
    assert "dict.update" in {c.qualname for c in run.main.codes.values()}
