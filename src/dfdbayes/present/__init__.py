"""One document of a fit, made of a few kinds of blocks, and what turns it into text, a notebook's output or a page."""
