"""The SSH wire format: strings and numbers, each with its length before it. Source: RFC 4251, 5."""

_LENGTH_BYTES = 4


class Malformed(Exception):
    """Bytes that are not what they should be; the text says which, for people."""


def string(data: bytes) -> bytes:
    """Write a string."""
    return len(data).to_bytes(_LENGTH_BYTES) + data


def unsigned(value: int) -> bytes:
    """Write an mpint that is not negative."""
    return string(value.to_bytes(value.bit_length() // 8 + 1) if value else b"")


class Reader:
    """Takes wire values off the front of bytes that may be anything."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """Take `count` bytes.

        Raises:
            Malformed: So many are not left.
        """
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise Malformed("it ends too early")
        self._at += count
        return taken

    def number(self) -> int:
        """Take a uint32."""
        return int.from_bytes(self.take(_LENGTH_BYTES))

    def string(self) -> bytes:
        """Take a string."""
        return self.take(self.number())

    def text(self) -> str:
        """Take a string that must be printable ASCII: a name of something."""
        data = self.string()
        text = data.decode("ascii", errors="replace")
        if not (text.isascii() and text.isprintable()):
            raise Malformed("a name in it is not plain text")
        return text

    def unsigned(self) -> int:
        """Take an mpint that must not be negative."""
        data = self.string()
        if data[:1] >= b"\x80":
            raise Malformed("a number in it is negative")
        return int.from_bytes(data)

    def end(self) -> None:
        """Make sure that nothing is left."""
        if self._at != len(self._data):
            raise Malformed("there are bytes after its end")
