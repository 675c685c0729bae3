"""Every exception that discreet raises on purpose, by its public name: `discreet.errors`."""

from discreet.words.errors import *  # noqa: F403
