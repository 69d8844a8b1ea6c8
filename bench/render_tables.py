# SPDX-License-Identifier: Apache-2.0
"""Tables and goals of docs/benchmarks.md."""


def table(head, rows):
    """Markdown with aligned columns: the first to the left, the others to the right."""
    cells = [head] + rows
    widths = [max(3, *(len(r[i]) for r in cells)) for i in range(len(head))]
    line = lambda r: "| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))) + " |"
    rule = "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|"
    return "\n".join([line(head), rule] + [line(r) for r in rows]) + "\n"


def mib(n):
    return "%.1f" % (n / 2**20)


def goal(text, met):
    return "- %s %s\n" % ("**Met:**" if met else "**Not met:**", text)
