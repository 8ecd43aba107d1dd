from typing import Any

__version__: str

class Error(Exception):
    what: str
    where: str
    advice: str
    exit_code: int

class Stream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class Footer:
    rows: int
    row_groups: int
    bytes: int
    created_by: str | None
    schema: list[tuple[str, str]]
    key_value_metadata: list[tuple[str, str | None]]
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

def command(program: list[str], words: list[str]) -> int: ...
def generate(
    spec: str,
    *,
    rows: int | None = None,
    seed: int | None = None,
    scale: float | None = None,
    batch_rows: int = 65536,
) -> Stream: ...
def footer(path: Any, *, columns: list[str] | None = None) -> Footer: ...
def load_stream(
    stream: Any, to: str, table: str, *, mode: str = "create", verify: bool = False, connections: int | None = None
) -> str: ...
def pgcopy(stream: Any) -> bytes: ...
