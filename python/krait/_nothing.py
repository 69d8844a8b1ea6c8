"""krait.mark and the others where nothing can be recorded."""


def mark(text, /, **fields):
    pass


def counter(name, value, /):
    pass


def flow(id, /):
    pass


class span:
    def __new__(cls, name, /, **fields):
        is_function = callable(name) and not isinstance(name, (type, span)) and not fields  # of a bare @krait.span
        return name if is_function else super().__new__(cls)

    def __init__(self, name, /, **fields):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass

    def set(self, **fields):
        pass

    def __call__(self, function):
        return function
