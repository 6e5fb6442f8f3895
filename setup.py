"""The extension table and the OpenMP probe; all metadata is in pyproject.toml.

``SKLEARN_BNP_NO_OPENMP=1`` builds without OpenMP even where the compiler has it.
``SKLEARN_BNP_NO_MULTIVERSION=1`` builds each loop once, for the oldest processor of its kind, and not
a second and third time for AVX2 and AVX-512: results can then be compared with those of an old
processor on any other. ``CFLAGS`` and ``LDFLAGS`` are added to ours by setuptools, so
``CFLAGS=-Werror`` makes every warning an error.
"""

import os
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.errors import CCompilerError, ExecError, PlatformError

# Imported after setuptools, which supplies both where the standard library no longer does.
from distutils.ccompiler import new_compiler  # isort: skip
from distutils.sysconfig import customize_compiler  # isort: skip

KERNELS = "sklearn_bnp/_kernels"
EXTENSIONS = (
    "_chain_entropies", "_collapsed", "_counts", "_entropies", "_forward_backward", "_gaussian",
    "_histograms", "_missing", "_responsibilities", "_sparse_rows", "_sticks", "_student", "_topics",
)  # fmt: skip

DIRECTIVES = {
    "language_level": "3",
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
}

# A parallel loop and a call into the runtime: a compiler may accept the flag and yet have neither
# the header nor the library (Apple's clang without libomp), so the program must link.
OPENMP_PROGRAM = """
#include <omp.h>
int main(void) {
    int i, n = 0;
    #pragma omp parallel for reduction(+:n)
    for (i = 0; i < 8; i++) n += omp_get_max_threads() > 0;
    return n != 8;
}
"""


def switched_on(variable):
    """True if the environment variable is set, and not to 0."""
    return os.environ.get(variable, "0") not in ("", "0")


def candidate_openmp_flags(compiler_type):
    """Pairs (compile flags, link flags), by preference."""
    if compiler_type == "msvc":
        return [(["/openmp"], [])]
    if sys.platform == "darwin":
        # Apple's clang takes the flag for its preprocessor alone, and libomp by name.
        return [(["-Xpreprocessor", "-fopenmp"], ["-lomp"]), (["-fopenmp"], ["-fopenmp"])]
    return [(["-fopenmp"], ["-fopenmp"])]


def links(compiler, program, compile_flags, link_flags):
    """True if the C program compiles and links with these flags."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(program)
        try:
            objects = compiler.compile(
                [str(source)], output_dir=folder, extra_postargs=compile_flags
            )
            compiler.link_executable(objects, "probe", output_dir=folder, extra_postargs=link_flags)
        except (CCompilerError, ExecError, PlatformError):
            return False
    return True


def openmp_flags(compiler):
    """The first pair of flags with which OpenMP works; empty lists if none does."""
    if switched_on("SKLEARN_BNP_NO_OPENMP"):
        print("sklearn_bnp: OpenMP switched off by SKLEARN_BNP_NO_OPENMP")
        return [], []
    for compile_flags, link_flags in candidate_openmp_flags(compiler.compiler_type):
        if links(compiler, OPENMP_PROGRAM, compile_flags, link_flags):
            print(f"sklearn_bnp: OpenMP found ({' '.join(compile_flags)})")
            return compile_flags, link_flags
    print("sklearn_bnp: OpenMP not found; the kernels will run on one thread")
    return [], []


def extensions():
    """One `Extension` for each row of the table."""
    compiler = new_compiler()
    customize_compiler(compiler)
    # Nobody watches floating-point exceptions here; no value depends on it (see vector_math.h).
    # MSVC knows `restrict` and compound literals from C11 on alone.
    msvc = compiler.compiler_type == "msvc"
    optimise = ["/O2", "/std:c11"] if msvc else ["-O3", "-fno-trapping-math"]
    macros = []
    if switched_on("SKLEARN_BNP_NO_MULTIVERSION"):
        print("sklearn_bnp: one version of each loop, by SKLEARN_BNP_NO_MULTIVERSION")
        macros.append(("SKLEARN_BNP_NO_MULTIVERSION", None))
    openmp_compile, openmp_link = openmp_flags(compiler)
    return [
        Extension(
            f"sklearn_bnp._kernels.{name}",
            sources=[f"{KERNELS}/{name}.pyx"],
            include_dirs=[KERNELS],
            define_macros=macros,
            extra_compile_args=optimise + openmp_compile,
            extra_link_args=openmp_link,
        )
        for name in EXTENSIONS
    ]


setup(
    ext_modules=cythonize(extensions(), build_dir="build", compiler_directives=DIRECTIVES),
    # Time stamps do not know the flags: never take an object that was built with others. Extensions
    # depend on nothing but their sources: as many are built at a time as there are cores.
    options={"build_ext": {"force": True, "parallel": os.cpu_count() or 1}},
)
