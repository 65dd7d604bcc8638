from commodel.platforms.build import compiler_note
from commodel.platforms.tools import NATIVE, ROOT


rule build:
    input:
        sorted(str(path) for path in [*NATIVE.glob("*/*.[ch]"), NATIVE / "Makefile"]),
        compiler=lambda wildcards: str(compiler_note(ROOT, wildcards.toolchain)),
    output:
        touch(str(ROOT / "build" / "{toolchain}" / "built")),
    localrule: True
    message:
        "compiling the native programs for {wildcards.toolchain}"
    shell:
        "{COMMODEL} build {wildcards.toolchain}"
