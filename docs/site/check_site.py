"""Checks a built site: links and anchors lead somewhere, and pages load nothing from a network."""

import functools
import html.parser
import pathlib
import urllib.parse

# What a browser fetches when it shows a page. Links of <a> are followed by a click only.
_FETCHED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src")}


class _Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.fetched = {""}, [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif (tag, name) in _FETCHED:
                self.fetched.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


_page = functools.cache(_Page)


def broken_links(site):
    """Returns messages about links that lead nowhere, and about files of other sites.

    Links to other sites are not followed: that needs a network.
    """
    return [message for path in sorted(site.rglob("*.html")) for message in _broken(site, path)]


def _broken(site, path):
    page = _page(path)
    for link in page.fetched:
        if urllib.parse.urlsplit(link).netloc:
            yield f"{path.relative_to(site)} loads {link}"
    for link in page.links + page.fetched:
        parts = urllib.parse.urlsplit(link or "")
        if parts.scheme or parts.netloc:
            continue
        target = pathlib.Path(urllib.parse.unquote(parts.path))
        target = (path.parent / target).resolve() if parts.path else path
        anchor = urllib.parse.unquote(parts.fragment)
        if not target.is_file():
            yield f"{path.relative_to(site)} has a link to {link}: there is no such file"
        elif target.suffix == ".html" and anchor not in _page(target).anchors:
            yield f"{path.relative_to(site)} has a link to {link}: there is no such anchor"
