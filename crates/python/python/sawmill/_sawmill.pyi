import os
from typing import Any, Protocol

__version__: str

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class Error(Exception):
    code: str
    what: str
    where: str
    advice: str
    exit_code: int

class Stream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class Footer:
    @property
    def rows(self) -> int: ...
    @property
    def row_groups(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def created_by(self) -> str | None: ...
    @property
    def schema(self) -> list[tuple[str, str]]: ...
    @property
    def key_value_metadata(self) -> list[tuple[str, str | None]]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

def command(program: list[str], words: list[str]) -> int: ...
def generate(
    spec: str | os.PathLike[str],
    *,
    rows: int | None = None,
    seed: int | None = None,
    scale: float | None = None,
    batch_rows: int = 65536,
) -> Stream: ...
def footer(path: str | os.PathLike[str], *, columns: list[str] | None = None) -> Footer: ...
def load_stream(
    stream: Any, to: str, table: str, *, mode: str = "create", verify: bool = False, connections: int | None = None
) -> str: ...
def pgcopy(stream: _ArrowStream) -> bytes: ...
