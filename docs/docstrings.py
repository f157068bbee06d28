"""How MkDocs shows docstrings: reStructuredText's tables as text, and its roles as code."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")
TABLE = re.compile(
    r"^( *=+(?: +=+)+ *\n(?:.+\n)+? *=+(?: +=+)+ *\n(?:(?:.+\n)+? *=+(?: +=+)+ *(?:\n|$))?)", re.MULTILINE
)


class Markdown(griffe.Extension):
    """Shows docstrings' reStructuredText tables as text, and its roles as code."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = TABLE.sub(r"\n```text\n\1\n```\n", ROLE.sub(r"`\1`", obj.docstring.value))
