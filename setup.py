"""What pyproject.toml cannot say: the licence, and links that work where only the README is."""

import pathlib
import re

from setuptools import setup

# The one place that says where the repository is.
REPOSITORY = "https://github.com/keras-xlnet/keras-xlnet"
ROOT = pathlib.Path(__file__).parent


def read_version():
    text = (ROOT / "keras_xlnet" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)[1]


def link_from_anywhere(markdown, version):
    """Returns Markdown with links to files of the repository as URLs of a release."""

    def as_url(match):
        start, path = match.groups()
        kind = "raw" if start.startswith("!") else "blob"
        return f"{start}({REPOSITORY}/{kind}/v{version}/{path})"

    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#)([^)]+)\)", as_url, markdown)


setup(
    license="Apache-2.0",
    long_description=link_from_anywhere(
        (ROOT / "README.md").read_text(encoding="utf-8"), read_version()
    ),
    long_description_content_type="text/markdown",
    project_urls={
        "Source": REPOSITORY,
        "Documentation": f"{REPOSITORY}/tree/main/docs",
        "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    },
)
