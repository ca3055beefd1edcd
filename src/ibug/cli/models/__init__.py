"""Models: in their libraries' own files, trained here, and in model files of ibug with the schema of their columns."""

from ibug.cli.models._boosters import BOOSTERS, Booster, Training, default_booster
from ibug.cli.models._fitted import Fitted, Request, train, wrap
from ibug.cli.models._library_files import load_model
from ibug.cli.models._parameters import parse_parameters
from ibug.cli.models._stored import Origin, StoredModel, load, save, save_again

__all__ = [
    "BOOSTERS",
    "Booster",
    "Fitted",
    "Origin",
    "Request",
    "StoredModel",
    "Training",
    "default_booster",
    "load",
    "load_model",
    "parse_parameters",
    "save",
    "save_again",
    "train",
    "wrap",
]
