"""What is built for PyPI: its files, its metadata, and installing it in an empty environment."""

import email
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import keras_xlnet

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = ("keras_xlnet", "pyproject.toml", "setup.py", "README.md", "LICENSE", "xlnet_command.py")
# All that a wheel may contain, and what has to be there.
ALLOWED = [
    r"keras_xlnet/([a-z_]+/){0,2}[a-z_0-9]+\.py",
    r"keras_xlnet/py\.typed",
    r"keras_xlnet/server/page\.html",
    r"keras_xlnet/visualization/attention_page\.html",
    r"keras_xlnet/shipped/[a-z_0-9]+/(README\.md|\w+\.json|curves\.png|model\.safetensors)",
    r"keras_xlnet/shipped/[a-z_0-9]+/assets/spiece\.model",
    r"keras_xlnet/shipped/adapters/[a-z_]+/(README\.md|\w+\.json|adapter\.safetensors)",
    r"xlnet_command\.py",
    r"xlnet_keras-[\d.]+\.dist-info/((licenses/)?LICENSE|METADATA|WHEEL|RECORD)",
    r"xlnet_keras-[\d.]+\.dist-info/(entry_points|top_level)\.txt",
]
VERSIONS = ("3.10", "3.11", "3.12", "3.13")


def find_python(version):
    """Returns the path of an interpreter, `None` if this machine has none of this version."""
    home = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *home.glob(f"versions/{version}.*/bin/python")]
    for path in filter(None, candidates):
        # A shim of pyenv is there for versions too that it does not start.
        if subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return path
    return None


# Strings in, classes out, with the preset that comes with the package.
USE = """
import sys
import keras_xlnet
from keras_xlnet.models import XLNetTextClassifier
assert "site-packages" in keras_xlnet.__file__, keras_xlnet.__file__
model = XLNetTextClassifier.from_preset("xlnet_small_en", num_classes=2, sequence_length=16)
print(model.predict(["a text", "another one"]).shape)
"""
USE_WITHOUT_TEXT = """
import numpy as np
import keras_xlnet
assert "site-packages" in keras_xlnet.__file__, keras_xlnet.__file__
model = keras_xlnet.models.XLNetBackbone.from_preset("xlnet_small_en")
print(model.predict({"token_ids": np.array([[9, 17, 12]] * 2)})["sequence_output"].shape[:1])
try:
    keras_xlnet.tokenizers.XLNetTokenizer(b"")
except ImportError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Paths of a wheel and of an sdist, built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        kwargs = {"ignore": shutil.ignore_patterns("__pycache__")} if (ROOT / name).is_dir() else {}
        copy(ROOT / name, source / name, **kwargs)
    run = {"cwd": source, "check": True, "capture_output": True}
    command = [sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", folder]
    subprocess.run(command, **run)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--verbose"]
    result = subprocess.run([*pip, "--wheel-dir", folder, source], **run)
    assert b"Warning" not in result.stdout + result.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def metadata(built):
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        return email.message_from_string(wheel.read(name).decode())


def test_files_of_the_wheel(built):
    names = zipfile.ZipFile(built[0]).namelist()
    strangers = [n for n in names if not any(re.fullmatch(pattern, n) for pattern in ALLOWED)]
    assert not strangers
    # Each of them is there for at least one file, and all files of the package are.
    unused = [p for p in ALLOWED if not any(re.fullmatch(p, name) for name in names)]
    if not keras_xlnet.adapters():
        unused = [pattern for pattern in unused if "adapters" not in pattern]
    assert not unused
    package = ROOT / "keras_xlnet"
    files = [p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= set(names)
    assert built[0].stat().st_size < 65e6  # PyPI takes up to 100 MB.


def test_files_of_the_sdist(built):
    with tarfile.open(built[1]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    wheel = zipfile.ZipFile(built[0]).namelist()
    assert {name for name in wheel if ".dist-info/" not in name} <= names
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "PKG-INFO"} <= names


def test_links_of_the_readme_work_elsewhere(metadata):
    text = metadata.get_payload()
    links = re.findall(r"\[[^\]]*\]\(([^)]+)\)", text)
    assert len(links) >= 25
    assert not [link for link in links if not link.startswith("https://")]
    version = f"v{keras_xlnet.__version__}"
    own = [link for link in links if f"/{version}/" in link]
    for link in own:
        assert (ROOT / link.split(f"/{version}/")[1].split("#")[0]).exists(), link
    assert any("/raw/" in link and link.endswith(".png") for link in own)
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_metadata(metadata):
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert {"Source", "Documentation", "Changelog", "Issues"} <= set(urls)
    classifiers = metadata.get_all("Classifier")
    versions = [c.rsplit(" ", 1)[1] for c in classifiers if re.search(r":: 3\.\d+$", c)]
    assert versions == ["3.10", "3.11", "3.12", "3.13"]
    assert metadata["Requires-Python"] == f">={versions[0]}"
    assert metadata["License"] == "Apache-2.0"
    required = [r for r in metadata.get_all("Requires-Dist") if "extra ==" not in r]
    assert sorted({re.match(r"\w+", r)[0] for r in required}) == ["keras", "numpy", "safetensors"]


def test_every_upper_limit_says_why():
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    limits = [i for i, line in enumerate(lines) if re.search(r'"[\w.-]+[^"]*(<|==)\d', line)]
    assert len(limits) >= 5
    for i in limits:
        assert lines[i - 1].lstrip().startswith("#"), f"no reason above: {lines[i]}"


def new_environment(python, folder, *requirements):
    """Returns the interpreter of a new virtual environment with these packages."""
    interpreter = find_python(python)
    if interpreter is None:
        pytest.skip(f"this machine has no Python {python}")
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    interpreter = folder / "bin" / "python"
    install = [interpreter, "-m", "pip", "install", "--quiet", *requirements]
    subprocess.run(install, check=True)
    return interpreter


def output_of(interpreter, code, folder, **environment):
    # Not in the repository, from which the package could be imported.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    result = subprocess.run(
        [interpreter, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
@pytest.mark.parametrize("python", VERSIONS)
def test_installed_in_an_empty_environment(kind, python, built, tmp_path):
    file = built[0] if kind == "wheel" else built[1]
    interpreter = new_environment(python, tmp_path / "venv", f"{file}[tensorflow]")
    assert "(2, 2)" in output_of(interpreter, USE, tmp_path, KERAS_BACKEND="tensorflow")
    version = subprocess.run(
        [tmp_path / "venv" / "bin" / "xlnet", "--version"], capture_output=True, text=True
    )
    assert version.stdout == f"xlnet-keras {keras_xlnet.__version__}\n"


@pytest.mark.slow
def test_installed_without_tensorflow(built, tmp_path):
    python = [version for version in VERSIONS if find_python(version)][-1]
    interpreter = new_environment(python, tmp_path / "venv", built[0], "jax")
    found = output_of(interpreter, USE_WITHOUT_TEXT, tmp_path, KERAS_BACKEND="jax")
    assert "(2,)" in found and 'pip install ".[text]"' in found
