"""The head of all HTML pages."""

from __future__ import annotations


def page_head(title: str, style: str) -> str:
    """Return the HTML before a page's body, without external resources. ``title`` must be escaped.

    >>> page_head("A &amp; B", "p { margin: 0 }").splitlines()[-3:]
    ['<title>A &amp; B</title>', '<style>p { margin: 0 }</style>', '</head>']
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<link rel="icon" href="data:,">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n'
    )
