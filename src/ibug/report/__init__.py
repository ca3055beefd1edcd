"""A report: one HTML file with scores, charts and an explorer of rows.

It opens in any browser, from disk and without a network. The charts are plotly's
(``pip install "ibug-learn[report]"``); its script is copied from its package into the file.
"""

from ibug.report._write import write

__all__ = ["write"]
