"""The check of links in the built site."""

from __future__ import annotations

from pathlib import Path

from doc_hooks import load_hook


def test_dead_links_and_external_resources_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a b.png").write_bytes(b"x")
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="sub/page.html#there">a</a><a href="#top">b</a><a href="https://x.org/">c</a><a href="sub/">d</a>'
        '<img src="a%20b.png"><img src="data:image/png;base64,AA"><script src="sub/x.js?v=1"></script>'
    )
    (tmp_path / "404.html").write_text('<a href="/nowhere">x</a>')
    (tmp_path / "sub" / "x.js").write_text("")
    (tmp_path / "sub" / "index.html").write_text("<p>x</p>")
    page = tmp_path / "sub" / "page.html"
    page.write_text('<a name="there"></a><a href="../index.html#top">x</a>')
    links = load_hook("links")
    assert list(links.check_site(tmp_path)) == []
    page.write_text(
        '<a href="../index.html#bottom">x</a><a href="other.html">y</a><img src="gone.png"><link rel="stylesheet" href="//cdn/x.css">'
        '<link rel="canonical" href="https://x.org/">'
    )
    assert list(links.check_site(tmp_path)) == [
        "index.html links to sub/page.html#there, but there is no such anchor",
        "sub/page.html loads gone.png, which does not exist",
        "sub/page.html loads //cdn/x.css",
        "sub/page.html links to ../index.html#bottom, but there is no such anchor",
        "sub/page.html links to other.html, which does not exist",
    ]
