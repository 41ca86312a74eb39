"""Builds the documentation site: `make docs`. No network is needed to build or to view it.

python docs/site/build.py                        # build/docs/index.html
python docs/site/build.py --builder linkcheck    # links to other sites, over the network
"""

import argparse
import pathlib
import shutil
import sys

SITE = pathlib.Path(__file__).resolve().parent
ROOT = SITE.parents[1]
sys.path[:0] = [str(SITE), str(ROOT)]

from api_pages import api_pages  # noqa: E402
from check_site import broken_links  # noqa: E402
from gallery import gallery_page  # noqa: E402
from pages import repository_pages, with_toctrees  # noqa: E402
from sphinx.cmd.build import build_main  # noqa: E402

_REFERENCE = """
- [API](api/index.rst): every public name, with its example.
- [Gallery](gallery.md): all pictures.
"""


def write_sources(folder):
    """Writes the pages that Sphinx reads."""
    pages = repository_pages()
    pages["index.md"] = with_toctrees(pages["index.md"].rstrip() + "\n" + _REFERENCE)
    pages |= {"gallery.md": gallery_page(), **api_pages()}
    for name, content in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def main(builder="html"):
    """Builds the site and checks its links. Returns the exit status."""
    output = ROOT / "build" / ("docs" if builder == "html" else f"docs-{builder}")
    sources = ROOT / "build" / "docs-sources"
    # Pages depend on these scripts too, which Sphinx does not know: it reads everything anew.
    for folder in (output, sources):
        shutil.rmtree(folder, ignore_errors=True)
    write_sources(sources)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--builder", builder]
    status = build_main([*options, "--conf-dir", str(SITE), str(sources), str(output)])
    if builder != "html" or status:
        return status
    broken = broken_links(output)
    print(*broken, sep="\n", end="\n" if broken else "")
    print(output / "index.html")
    return 1 if broken else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--builder", default="html", help="a builder of Sphinx")
    sys.exit(main(parser.parse_args().builder))
