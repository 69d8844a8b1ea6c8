# SPDX-License-Identifier: Apache-2.0
"""Traces made up by dice: any nesting of field classes, in CTF 1.8 or CTF 2, with bytes that fit them.

A class of this file is a field class: `value(dice)` makes a value up, `write(bits, value, scope)` appends it, `tsdl(name)`
and `json()` say it in metadata. `scope` has the values of integers that lengths and tags refer to, by name.
"""

import json
import struct

LE, BE = "le", "be"


class Bits:
    """Bits as a packet holds them: little-endian fields from each byte's lowest bit, big-endian ones from its highest."""

    def __init__(self):
        self.data = bytearray()
        self.at = 0

    def align(self, bits):
        self.at = -(-self.at // bits) * bits
        self.data += bytes(-(-self.at // 8) - len(self.data))

    def put(self, value, size, order):
        self.data += bytes(max(0, -(-(self.at + size) // 8) - len(self.data)))
        for i in range(size):
            bit = value >> (i if order == LE else size - 1 - i) & 1
            at = self.at + i
            self.data[at // 8] |= bit << (at % 8 if order == LE else 7 - at % 8)
        self.at += size


class Int:
    def __init__(self, dice, order, plain=False):
        whole = plain or dice.random() < 0.6
        self.size = dice.choice([8, 16, 32, 64]) if whole else dice.randint(1, 64)
        self.align = dice.choice([8, 8, 8, 16, 32, 64]) if whole else dice.choice([1, 1, 1, 4, 8])
        # Within a byte the byte order may not change.
        self.order = dice.choice([LE, BE]) if whole and dice.random() < 0.2 else order
        self.signed = not plain and dice.random() < 0.5
        # babeltrace2 shifts by 64 where it prints 61 to 63 bits in hexadecimal digits.
        self.base = dice.choice([10, 10, 10, 2 if 60 < self.size < 64 else 16, 8, 2])

    def value(self, dice):
        edges = [0, 1, (1 << self.size) - 1, 1 << (self.size - 1), (1 << self.size - 1) - 1]
        raw = dice.choice(edges) if dice.random() < 0.4 else dice.getrandbits(self.size)
        return raw & (1 << self.size) - 1

    def write(self, bits, value, scope):
        bits.align(self.align)
        bits.put(value & (1 << self.size) - 1, self.size, self.order)

    def body(self):
        return "integer { size = %d; align = %d; signed = %s; byte_order = %s; base = %d; }" % (
            self.size, self.align, str(self.signed).lower(), self.order, self.base)

    def tsdl(self, name):
        return "%s %s" % (self.body(), name)

    def json(self):
        kind = "signed" if self.signed else "unsigned"
        return {"type": "fixed-length-%s-integer" % kind, "length": self.size, "alignment": self.align,
                "byte-order": {LE: "little-endian", BE: "big-endian"}[self.order], "preferred-display-base": self.base}


class Length(Int):
    """An integer that says how many there are."""

    def __init__(self, dice, order):
        super().__init__(dice, order)
        self.signed = False
        if self.size < 3:
            self.size, self.align = 8, 8

    def value(self, dice):
        return dice.choice([0, 1, 1, 2, 3, 5])


class Enum(Int):
    def __init__(self, dice, order):
        super().__init__(dice, order)
        self.size = max(self.size, 4)
        low, high = (-(1 << self.size - 1), (1 << self.size - 1) - 1) if self.signed else (0, (1 << self.size) - 1)
        self.labels = []
        for i in range(dice.randint(1, 5)):
            begin = dice.choice([low, high, 0, 1, 2, dice.randint(low, high)])
            end = min(high, begin + dice.choice([0, 0, 1, 3]))
            self.labels.append(("label %d" % dice.randint(0, i), begin, end))

    def value(self, dice):
        if dice.random() < 0.7:
            _, begin, end = dice.choice(self.labels)
            return dice.randint(begin, end) & (1 << self.size) - 1
        return super().value(dice)

    def tsdl(self, name):
        labels = ", ".join('"%s" = %d ... %d' % label for label in self.labels)
        return "enum : %s { %s } %s" % (self.body(), labels, name)

    def json(self):
        mappings = {}
        for label, begin, end in self.labels:
            mappings.setdefault(label, []).append([begin, end])
        return {**super().json(), "mappings": mappings}


class Float:
    def __init__(self, dice, order):
        self.size = dice.choice([32, 64])
        self.align = dice.choice([1, 8, 32, 64])
        self.order = order

    def value(self, dice):
        return dice.choice([0.0, -0.0, 1.5, -1e30, 0.1, float("inf"), dice.uniform(-1000, 1000)])

    def write(self, bits, value, scope):
        bits.align(self.align)
        raw = struct.unpack("<I" if self.size == 32 else "<Q", struct.pack("<f" if self.size == 32 else "<d", value))[0]
        bits.put(raw, self.size, self.order)

    def tsdl(self, name):
        exponent, mantissa = (8, 24) if self.size == 32 else (11, 53)
        return "floating_point { exp_dig = %d; mant_dig = %d; byte_order = %s; align = %d; } %s" % (
            exponent, mantissa, self.order, self.align, name)

    def json(self):
        return {"type": "fixed-length-floating-point-number", "length": self.size, "alignment": self.align,
                "byte-order": {LE: "little-endian", BE: "big-endian"}[self.order]}


TEXTS = ["a", "x y", 'quote " and \\', "tab\tline\n", "longer than sixteen bytes", "fifteen bytes..", "sixteen bytes...", "é∀"]


class String:
    align = 8

    def value(self, dice):
        return dice.choice(TEXTS).encode()  # babeltrace2 before 2.0.5 shows an empty one as the one before

    def write(self, bits, value, scope):
        bits.align(8)
        for byte in value + b"\0":
            bits.put(byte, 8, LE)

    def tsdl(self, name):
        return "string { encoding = UTF8; } %s" % name

    def json(self):
        return {"type": "null-terminated-string"}


class Text:
    """An array of characters."""

    align = 8

    def __init__(self, dice):
        self.size = dice.choice([1, 4, 16, 17, 40])

    def value(self, dice):
        text = dice.choice(TEXTS).encode()[: self.size].decode(errors="ignore") or "b"
        return text.encode().ljust(self.size, b"\0")

    def write(self, bits, value, scope):
        bits.align(8)
        for byte in value:
            bits.put(byte, 8, LE)

    def tsdl(self, name):
        return "integer { size = 8; align = 8; signed = false; encoding = UTF8; } %s[%d]" % (name, self.size)

    def json(self):
        return {"type": "static-length-string", "length": self.size}


class Array:
    def __init__(self, element, size):
        self.element, self.size, self.align = element, size, element.align

    def value(self, dice):
        return [self.element.value(dice) for _ in range(self.size)]

    def write(self, bits, value, scope):
        bits.align(self.align)
        for one in value:
            self.element.write(bits, one, scope)

    def suffix(self):
        return "[%d]" % self.size

    def tsdl(self, name):
        return self.element.tsdl(name + self.suffix())

    def json(self):
        return {"type": "static-length-array", "length": self.size, "element-field-class": self.element.json()}


class Sequence(Array):
    """As many as the field `length` of the same struct says."""

    def __init__(self, element, length):
        super().__init__(element, 0)
        self.length = length

    def value(self, dice):
        return dice  # how many is known when it is written

    def write(self, bits, value, scope):
        bits.align(self.align)
        for _ in range(scope[self.length]):
            self.element.write(bits, self.element.value(value), scope)

    def suffix(self):
        return "[%s]" % self.length

    def json(self):
        return {"type": "dynamic-length-array", "length-field-location": {"path": [self.length]},
                "element-field-class": self.element.json()}


class Variant:
    align = 1

    def __init__(self, tag, options):
        self.tag, self.options = tag, options

    def value(self, dice):
        return dice

    def write(self, bits, value, scope):
        option = self.options[scope[self.tag]]
        option.write(bits, option.value(value), scope)

    def tsdl(self, name):
        options = "".join("%s; " % option.tsdl("o%d" % i) for i, option in enumerate(self.options))
        return "variant <%s> { %s} %s" % (self.tag, options, name)

    def json(self):
        options = [{"name": "o%d" % i, "field-class": option.json(), "selector-field-ranges": [[i, i]]}
                   for i, option in enumerate(self.options)]
        return {"type": "variant", "selector-field-location": {"path": [self.tag]}, "options": options}


class Tag(Int):
    """The integer, with labels, that chooses an option."""

    def __init__(self, dice, order, count):
        super().__init__(dice, order, plain=True)
        self.count, self.base = count, 10

    def value(self, dice):
        return dice.randrange(self.count)

    def tsdl(self, name):
        return "enum : %s { %s } %s" % (self.body(), ", ".join("o%d = %d" % (i, i) for i in range(self.count)), name)

    def json(self):
        return {**super().json(), "mappings": {"o%d" % i: [[i, i]] for i in range(self.count)}}


class Struct:
    def __init__(self, members):
        self.members = members
        self.align = max([member.align for _, member in members], default=1)

    def value(self, dice):
        return [member.value(dice) for _, member in self.members]

    def write(self, bits, value, scope):
        bits.align(self.align)
        for (name, member), one in zip(self.members, value):
            if isinstance(member, (Length, Tag)):
                scope[name] = one
            member.write(bits, one, scope)

    def body(self):
        return "struct { %s}" % "".join("%s; " % member.tsdl(name) for name, member in self.members)

    def tsdl(self, name):
        return "%s %s" % (self.body(), name)

    def json(self):
        return {"type": "structure",
                "member-classes": [{"name": name, "field-class": member.json()} for name, member in self.members]}


class Maker:
    """Makes field classes up. Names are unique in a scope, so that a path of one name finds its field."""

    def __init__(self, dice, order, prefix):
        self.dice, self.order, self.prefix, self.count = dice, order, prefix, 0

    def name(self):
        self.count += 1
        return "%s%d" % (self.prefix, self.count)

    def scalar(self):
        kinds = [lambda: Int(self.dice, self.order), lambda: Enum(self.dice, self.order), lambda: Float(self.dice, self.order)]
        return self.dice.choice([kinds[0], kinds[0], *kinds])()

    def element(self, depth):
        pick = self.dice.random()
        if depth and pick < 0.15:
            return Struct([(self.name(), self.scalar()) for _ in range(self.dice.randint(1, 3))])
        return String() if pick < 0.25 else self.scalar()

    def members(self, depth):
        """One field, with what it refers to before it."""
        pick = self.dice.random()
        name = self.name()
        if pick < 0.15:
            return [(name, String())]
        if pick < 0.25:
            return [(name, Text(self.dice))]
        if pick < 0.33:
            return [(name, Array(self.element(depth), self.dice.randint(1, 4)))]
        if pick < 0.47:
            length = self.name()
            return [(length, Length(self.dice, self.order)), (name, Sequence(self.element(depth), length))]
        if depth and pick < 0.55:
            tag, options = self.name(), [self.option(depth - 1) for _ in range(self.dice.randint(1, 4))]
            return [(tag, Tag(self.dice, self.order, len(options))), (name, Variant(tag, options))]
        if depth and pick < 0.62:
            return [(name, self.struct(depth - 1))]
        return [(name, self.scalar())]

    def option(self, depth):
        return self.dice.choice([self.scalar, String, lambda: self.struct(depth)])()

    def struct(self, depth, most=4):
        return Struct([m for _ in range(self.dice.randint(1, most)) for m in self.members(depth)])


HEADERS = ["compact", "large", "flat"]


class Trace:
    """Some event classes, and packets with events of them."""

    def __init__(self, dice, ctf2=False):
        self.dice, self.ctf2 = dice, ctf2
        self.order = dice.choice([LE, LE, BE])
        self.header = dice.choice(HEADERS)
        self.frequency = dice.choice([10**9, 10**9, 10**6, 123456789])
        self.context = Maker(dice, self.order, "c").struct(1, 2) if dice.random() < 0.5 else None
        self.events = []
        for i in range(dice.randint(1, 6)):
            self.events.append((i if dice.random() < 0.8 else 40 + i, Maker(dice, self.order, "f").struct(2)))

    # -- metadata --

    def tagged(self):
        tag, time = {"compact": (5, 27), "large": (16, 32)}[self.header]
        return tag, time, 1 if self.header == "compact" else 8

    def header_tsdl(self):
        if self.header == "flat":
            return "struct { integer { size = 16; align = 8; } id; integer { size = 64; align = 8; map = clock.c.value; } timestamp; }"
        tag, time, align = self.tagged()
        top = (1 << tag) - 1
        return ("struct { enum : integer { size = %d; align = %d; } { compact = 0 ... %d, extended = %d } id; variant <id> { struct { "
                "integer { size = %d; align = %d; map = clock.c.value; } timestamp; } compact; struct { integer { size = 32; align = "
                "8; } id; integer { size = 64; align = 8; map = clock.c.value; } timestamp; } extended; } v; } align(8)"
                % (tag, align, top - 1, top, time, align))

    def tsdl(self):
        text = ["/* CTF 1.8 */", "trace { major = 1; minor = 8; byte_order = %s; packet.header := struct { integer { size = 32; align = 8; } magic; }; };"
                % self.order, "clock { name = c; freq = %d; offset_s = 1500000000; };" % self.frequency]
        sizes = "integer { size = 32; align = 8; } content_size; integer { size = 32; align = 8; } packet_size;"
        times = "".join(" integer { size = 64; align = 8; map = clock.c.value; } timestamp_%s;" % which for which in ("begin", "end"))
        stream = "packet.context := struct { %s%s };" % (sizes, times)
        context = " event.context := %s;" % self.context.body() if self.context else ""
        text.append("stream { %s event.header := %s;%s };" % (stream, self.header_tsdl(), context))
        for number, fields in self.events:
            text.append('event { id = %d; name = "event %d"; fields := %s; };' % (number, number, fields.body()))
        return "\n".join(text) + "\n"

    def integer(self, size, align=8, **more):
        return {"type": "fixed-length-unsigned-integer", "length": size, "alignment": align,
                "byte-order": {LE: "little-endian", BE: "big-endian"}[self.order], **more}

    @staticmethod
    def structure(**members):
        return {"type": "structure", "member-classes": [{"name": n, "field-class": fc} for n, fc in members.items()]}

    def header_json(self):
        role_id, role_time = {"roles": ["event-record-class-id"]}, {"roles": ["default-clock-timestamp"]}
        if self.header == "flat":
            return self.structure(id=self.integer(16, **role_id), timestamp=self.integer(64, **role_time))
        tag, time, align = self.tagged()
        top = (1 << tag) - 1
        options = [
            {"field-class": self.structure(timestamp=self.integer(time, align, **role_time)), "selector-field-ranges": [[0, top - 1]]},
            {"field-class": self.structure(id=self.integer(32, **role_id), timestamp=self.integer(64, **role_time)),
             "selector-field-ranges": [[top, top]]},
        ]
        variant = {"type": "variant", "options": options,
                   "selector-field-location": {"origin": "event-record-header", "path": ["id"]}}
        header = self.structure(id=self.integer(tag, align, **role_id), v=variant)
        return {**header, "minimum-alignment": 8}

    def json(self):
        packet = self.structure(magic=self.integer(32, roles=["packet-magic-number"]))
        context = self.structure(content=self.integer(32, roles=["packet-content-length"]), size=self.integer(32, roles=["packet-total-length"]),
                                 begin=self.integer(64, roles=["default-clock-timestamp"]),
                                 end=self.integer(64, roles=["packet-end-default-clock-timestamp"]))
        stream = {"type": "data-stream-class", "default-clock-class-id": "c", "packet-context-field-class": context,
                  "event-record-header-field-class": self.header_json()}
        if self.context:
            stream["event-record-common-context-field-class"] = self.located(self.context.json(), "event-record-common-context")
        fragments = [
            {"type": "preamble", "version": 2},
            {"type": "trace-class", "packet-header-field-class": packet},
            {"type": "clock-class", "id": "c", "frequency": self.frequency, "offset-from-origin": {"seconds": 1500000000}},
            stream,
        ]
        for number, fields in self.events:
            fragments.append({"type": "event-record-class", "id": number, "name": "event %d" % number,
                              "payload-field-class": self.located(fields.json(), "event-record-payload")})
        return "".join("\x1e%s\n" % json.dumps(f) for f in fragments)

    def located(self, fc, origin):
        """CTF 2 finds a field by its whole path from an origin, or from the struct that the asker is in. Both are used, but
        the second alone within options, which a path does not name."""

        def walk(node, path, in_option):
            if node["type"] == "structure":
                for member in node["member-classes"]:
                    walk(member["field-class"], path + [member["name"]], in_option)
            for key in ("length-field-location", "selector-field-location"):
                if key in node and not in_option and self.dice.random() < 0.5:
                    node[key] = {"origin": origin, "path": path[:-1] + node[key]["path"]}
            if "element-field-class" in node:
                walk(node["element-field-class"], path + [None], in_option)
            for option in node.get("options", []):
                walk(option["field-class"], path, True)

        walk(fc, [], False)
        return fc

    # -- events --

    def write_header(self, bits, number, time):
        bits.align(8)
        if self.header == "flat":
            bits.put(number, 16, self.order)
            bits.put(time, 64, self.order)
            return
        tag, size, align = self.tagged()
        top = (1 << tag) - 1
        if number < top and time >> size == self.time >> size and self.dice.random() < 0.8:
            bits.put(number, tag, self.order)
            bits.put(time & (1 << size) - 1, size, self.order)
            return
        bits.put(top, tag, self.order)
        bits.align(8)
        bits.put(number, 32, self.order)
        bits.put(time, 64, self.order)

    def packet(self, count):
        bits = Bits()
        bits.put(0xC1FC1FC1, 32, self.order)
        bits.put(0, 64, self.order)  # the sizes, when they are known
        bits.put(self.time, 64, self.order)
        bits.put(0, 64, self.order)
        for _ in range(count):
            number, fields = self.dice.choice(self.events)
            time = self.time + self.dice.choice([0, 1, 7, 1000, 10**6, 1 << 27])
            self.write_header(bits, number, time)
            self.time = time
            if self.context:
                self.context.write(bits, self.context.value(self.dice), {})
            fields.write(bits, fields.value(self.dice), {})
        content = bits.at
        size = -(-content // 8) + self.dice.choice([0, 1, 64])
        sizes = Bits()
        sizes.put(content, 32, self.order)
        sizes.put(size * 8, 32, self.order)
        end = Bits()
        end.put(self.time, 64, self.order)
        data = bytes(bits.data).ljust(size, b"\0")
        return data[:4] + bytes(sizes.data) + data[12:20] + bytes(end.data) + data[28:]

    def write(self, folder, packets=3, events=40):
        self.time = 0
        folder.mkdir(parents=True)
        (folder / "metadata").write_text(self.json() if self.ctf2 else self.tsdl())
        (folder / "stream").write_bytes(b"".join(self.packet(self.dice.randint(1, events)) for _ in range(packets)))
        return folder
