"""The text of the kernels: plain C for all compilers, and no state that outlives a call."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "sklearn_bnp" / "_kernels"
SOURCES = sorted(path for ext in ("pyx", "pxd", "h") for path in FOLDER.glob(f"*.{ext}"))
# Headers that others include, once for each type or width.
PARTS = {"chain_loops.h", "pair_sums.h", "row_loops.h", "sparse_loops.h"}

# A function that changes a name of its module, a variable of C that stays, a container of a module.
STATE = re.compile(
    r"^\s+global\s|^\s*static\s+(?!inline\b)(?!const\b)[\w\s*]+(\[\w*\]\s*)?[=;]|^[A-Za-z_]\w*\s*=\s*[\[{]|\bthread_local\b",
    flags=re.MULTILINE,
)

pytestmark = pytest.mark.skipif(not SOURCES, reason="the package is installed without its sources")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_state_outlives_a_call(path):
    """So that calls from several threads never meet, whether or not Python has a global lock."""
    assert STATE.search(path.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize(
    "text",
    ["    global CHUNK\n", "static double seen[4];\n", "    static int n = 0;\n", "_cache = {}\n"],
)
def test_state_is_found(text):
    assert STATE.search(text)


EXTENSIONS = re.compile(r"__attribute__|__builtin_|__extension__|_Pragma|__asm__|\b__?typeof__\b")


def seen_without_gnu(path, folder):
    """The text of a header that compilers other than GCC and Clang see, without the headers of the system."""
    for name in re.findall(
        r"#include <([\w.]+)>", "".join(x.read_text() for x in SOURCES if x.suffix == ".h")
    ):
        (folder / name).touch()
    command = [
        "gcc",
        "-E",
        "-P",
        "-x",
        "c",
        "-U__GNUC__",
        "-nostdinc",
        f"-I{folder}",
        f"-I{FOLDER}",
        str(path),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_headers_are_plain_c(tmp_path):
    """MSVC has no vectors, attributes or arrays of variable length: they stand behind __GNUC__."""
    headers = [path for path in SOURCES if path.suffix == ".h" and path.name not in PARTS]
    assert len(headers) > 5
    # Without __GNUC__, the headers of glibc define these four themselves, which GCC knows already.
    own = [f"-D_Float{bits}=glibc_float{bits}" for bits in ("32", "64", "32x", "64x")]
    flags = [
        "-std=c11",
        "-U__GNUC__",
        "-Werror=vla",
        "-Werror=implicit-function-declaration",
        "-fsyntax-only",
    ]
    for path in headers:
        command = ["gcc", *flags, *own, "-x", "c", str(path)]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr[:2000]
        text = seen_without_gnu(path, tmp_path)
        assert len(text) > 100
        assert EXTENSIONS.search(text) is None
