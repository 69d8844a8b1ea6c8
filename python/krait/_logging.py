"""krait.Handler; a module of its own, so that `import krait` does not import logging."""
import logging as _logging


def _nothing(record):
    """No Python that krait records, or no native part."""


class Handler(_logging.Handler):
    """Record what it is given as log records of the recording that runs, if one does.

        logging.getLogger().addHandler(krait.Handler())

    It writes nothing anywhere else. With `krait record --log`, which needs no handler, records that both see are recorded once.
    """

    def __init__(self, level=_logging.NOTSET):
        super().__init__(level)
        try:
            from krait._agent import log
        except Exception:
            log = _nothing
        self.emit = log  # not a function in Python: the recording shows none of krait's own
