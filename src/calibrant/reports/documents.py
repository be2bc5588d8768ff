"""What every report can do: become a page, be written to a file, and show itself in a notebook."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

from calibrant.core.files import replacing

FRAME_HEIGHT = 720


class Document(ABC):
    """A report: a summary in numbers and words, and the page that shows it.

    Attributes
    ----------
    summary : Result
        Everything the page says; it has a title.
    """

    summary: Any

    @abstractmethod
    def _rendered(self) -> str:
        """Draw and fill in the page."""

    @cached_property
    def _page(self) -> str:
        return self._rendered()

    def html(self) -> str:
        """Return the page: one self-contained file."""
        return self._page

    def json(self) -> str:
        """Return the summary as JSON; ``type(report.summary).from_json`` reads it back."""
        text: str = self.summary.to_json()
        return text

    def write_html(self, path: Any) -> Path:
        """Write the page to a file, which is there in full or not at all, and return its path.

        Parameters
        ----------
        path : str or path
            Where to write it.

        Returns
        -------
        Path
            The same path.
        """
        target = Path(path)
        page = self.html()
        with replacing(target) as unfinished:
            unfinished.write_text(page, encoding="utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str:
        # A notebook has styles and scripts of its own: the page lives in a frame, where neither disturbs the other.
        try:
            page = self.html()
        except ImportError:  # the words need neither jinja2 nor matplotlib
            words: str = self.summary._repr_html_()
            return words
        return (
            f'<iframe srcdoc="{html.escape(page)}" title="{html.escape(self.summary.title)}" sandbox="allow-scripts" '
            f'width="100%" height="{FRAME_HEIGHT}" loading="lazy"></iframe>'
        )

    def __str__(self) -> str:
        return str(self.summary)

    __repr__ = __str__
