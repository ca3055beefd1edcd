"""What the user sees: messages, progress, summaries, errors and exit codes."""

from ibug.cli.screen._errors import DRIFT, guarded
from ibug.cli.screen._explanation import explanation_text
from ibug.cli.screen._layout import bytes_text, done, facts_table, plain_table, visible, words
from ibug.cli.screen._session import Session
from ibug.cli.screen._summaries import (
    drift_text,
    fit_text,
    groups_text,
    nights_text,
    recalibrated_text,
    scores_text,
    several_scores_text,
)

__all__ = [
    "DRIFT",
    "Session",
    "bytes_text",
    "done",
    "drift_text",
    "explanation_text",
    "facts_table",
    "fit_text",
    "groups_text",
    "guarded",
    "nights_text",
    "plain_table",
    "recalibrated_text",
    "scores_text",
    "several_scores_text",
    "visible",
    "words",
]
