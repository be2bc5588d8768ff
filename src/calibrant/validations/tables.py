"""Tables for papers: Markdown, which word processors take, and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, its first column of words, the others of numbers.

    Examples
    --------
    >>> print(markdown_table(("Statistic", "Estimate"), [("AUROC", "0.81")]))
    | Statistic | Estimate |
    |:---|---:|
    | AUROC | 0.81 |
    """
    ruler = "|".join(":---" if k == 0 else "---:" for k in range(len(names)))
    lines = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in (names, *rows))
    head, *body = (f"| {line} |" for line in lines)
    return "\n".join([head, f"|{ruler}|", *body])


def latex_table(names: Sequence[str], rows: Sequence[Sequence[str]], *, footnote: str = "") -> str:
    r"""Write a table in LaTeX that needs no package, with small print below it.

    Examples
    --------
    >>> print(latex_table(("Statistic", "95% CI"), [("AUROC", "0.78 to 0.85")]))
    \begin{tabular}{lr}
    \hline
    Statistic & 95\% CI \\
    \hline
    AUROC & 0.78 to 0.85 \\
    \hline
    \end{tabular}
    """
    head, *body = (" & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in (names, *rows))
    columns = "l" + "r" * (len(names) - 1)
    below = [rf"\par\smallskip{{\footnotesize {footnote.translate(_LATEX)}\par}}"] if footnote else []
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", head, r"\hline", *body, r"\hline", r"\end{tabular}"]
    return "\n".join([*table, *below])
