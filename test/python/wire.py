"""The protobuf wire format by hand: what no generated stub can get wrong for both sides."""


def _varint(data, position):
    value, shift = 0, 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def decode(data):
    """Fields of a message by number, each a list of ints and bytes in their order."""
    fields, position = {}, 0
    while position < len(data):
        key, position = _varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = _varint(data, position)
        elif kind == 2:
            length, position = _varint(data, position)
            value, position = data[position : position + length], position + length
        else:
            raise ValueError(f"field {number} has wire type {kind}")
        fields.setdefault(number, []).append(value)
    return fields


def _encoded_varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(*fields):
    """A message of (number, value) pairs; a value is an int, a str or bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += _encoded_varint(number << 3) + _encoded_varint(value)
            continue
        text = value.encode() if isinstance(value, str) else value
        out += _encoded_varint(number << 3 | 2) + _encoded_varint(len(text)) + text
    return out
