"""Print the size of the package: lines, modules, hops of one prediction, public names, parameters.

python tools/house.py
"""

from __future__ import annotations

import ast
import inspect
import io
import statistics
import sys
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "ibug"


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that docstrings have."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            found |= set(range(first.lineno, first.end_lineno + 1))
    return found


def code_lines(text: str, docstrings: set[int]) -> int:
    """Return the number of lines with a token that is neither a comment nor part of a docstring."""
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def print_size() -> None:
    """Print lines and modules of the package and of each of its folders."""
    rows: dict[str, list[tuple[int, int, int]]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        docstrings = docstring_lines(ast.parse(text))
        folder = path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else "(top)"
        rows.setdefault(folder, []).append((text.count("\n"), code_lines(text, docstrings), len(docstrings)))
    print(f"{'':14}{'lines':>8}{'code':>8}{'docstr.':>9}{'modules':>9}{'median':>8}")
    rows["ibug"] = [one for some in rows.values() for one in some]
    for name, sizes in rows.items():
        lines, code, docstrings = (sum(column) for column in zip(*sizes, strict=True))
        median = statistics.median(size[0] for size in sizes)
        print(f"{name:14}{lines:8,}{code:8,}{docstrings:9,}{len(sizes):9,}{median:8.0f}")


def print_names() -> None:
    """Print the public names of the estimator, its parameters, and the files that one interval passes through."""
    from sklearn.datasets import make_regression
    from sklearn.ensemble import GradientBoostingRegressor

    from ibug import IBUGRegressor

    X, y = make_regression(400, 5, noise=10, random_state=0)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    u = IBUGRegressor(model, prefit=True).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    u.predict_interval(X[:1])
    parameters = list(inspect.signature(IBUGRegressor).parameters)
    names = [name for name in dir(u) if not name.startswith("_") and name not in parameters]
    functions: dict[tuple[str, str], None] = {}

    def note(frame, event, _) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<"):
            functions[Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname] = None

    sys.setprofile(note)
    u.predict_interval(X[:1])
    sys.setprofile(None)
    files = dict.fromkeys(file for file, _ in functions)
    print(f"\nIBUGRegressor: {len(parameters)} parameters, {len(names)} public names when fitted beside them")
    print(f"predict_interval of one row: {len(functions)} functions of ibug in {len(files)} files")
    print("  " + ", ".join(files))


if __name__ == "__main__":
    print_size()
    print_names()
