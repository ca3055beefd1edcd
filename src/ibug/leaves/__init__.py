"""From a trained model and rows to leaf numbers: one small reader per library."""

from ibug.leaves._base import LeafReader, read_leaves_of, reader_type, require_fitted

__all__ = ["LeafReader", "read_leaves_of", "reader_type", "require_fitted"]
