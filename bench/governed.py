# SPDX-License-Identifier: Apache-2.0
"""Programs for the judge of --max-overhead, beside pyperformance's: tools and a framework that people run, and calls that are
hard to govern.

    governed.py NAME
"""

import contextlib
import io
import pathlib
import sys

import pyperf


def sources():
    """Some of the interpreter's own modules: there on every machine."""
    import json

    return sorted(str(p) for p in pathlib.Path(json.__file__).parent.parent.glob("[a-d]*.py"))[:24]


def flake8():
    from flake8.main.application import Application

    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        Application().run(["--jobs=1", "--isolated", "--exit-zero", *sources()])


def black():
    import black

    for path in sources()[:5]:
        with contextlib.suppress(black.NothingChanged):
            black.format_file_contents(pathlib.Path(path).read_text(), fast=True, mode=black.Mode())


def django():
    import django as package
    from django.conf import settings
    from django.http import HttpResponse
    from django.template import Context, Engine
    from django.test import RequestFactory
    from django.urls import path

    template = Engine().from_string("{% for row in rows %}<p>{{ row.name|upper }} {{ row.size }}</p>{% endfor %}")
    rows = [{"name": "row %d" % i, "size": i} for i in range(20)]

    def page(request, number):
        return HttpResponse(template.render(Context({"rows": rows})))

    if not settings.configured:
        urls = type(sys)("urls")
        urls.urlpatterns = [path("page/<int:number>/", page)]
        sys.modules["urls"] = urls
        middleware = ["django.middleware.common.CommonMiddleware", "django.middleware.http.ConditionalGetMiddleware"]
        settings.configure(ROOT_URLCONF="urls", ALLOWED_HOSTS=["*"], MIDDLEWARE=middleware, LOGGING_CONFIG=None)
        package.setup()
    from django.core.handlers.wsgi import WSGIHandler

    handler, factory = WSGIHandler(), RequestFactory()
    for i in range(300):
        handler.get_response(factory.get("/page/%d/" % i))


def even(count):
    """So many functions of one line, called in turn."""
    names = {}
    exec("\n".join("def f%d(x):\n    return x" % i for i in range(count)), names)
    functions = [names["f%d" % i] for i in range(count)]

    def run():
        for _ in range(3_000_000 // count):
            for function in functions:
                function(1)

    return run


def switches(depth):
    """Greenlets that wait for each other, each so many frames deep."""
    from greenlet import greenlet

    def work(n):
        return sum(range(n))

    def deep(n, main):
        if n:
            return deep(n - 1, main)
        while True:
            work(200)
            main.switch()

    def run():
        main = greenlet.getcurrent()
        others = [greenlet(deep) for _ in range(4)]
        for other in others:
            other.switch(depth, main)
        for _ in range(10_000):
            for other in others:
                other.switch()
        for other in others:
            other.throw()

    return run


def exceptions():
    def fails(i):
        raise ValueError(i)

    def handles(i):
        try:
            fails(i)
        except ValueError:
            return i

    for i in range(600_000):
        handles(i)


PROGRAMS = {
    "flake8": flake8,
    "black": black,
    "django": django,
    "even 70": even(70),
    "even 10000": even(10_000),
    "exceptions": exceptions,
    **{"greenlets %d" % depth: switches(depth) for depth in (5, 50, 300)},
}

if __name__ == "__main__":
    pyperf.Runner().bench_func(sys.argv[1], PROGRAMS[sys.argv.pop(1)])
