"""``python -m ibug.cli`` is the ``ibug`` command."""

from ibug.cli import main

if __name__ == "__main__":
    main()
