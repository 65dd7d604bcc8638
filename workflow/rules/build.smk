from commodel.platforms.build import note_compiler
from commodel.platforms.toolchains import list_native_sources
from commodel.platforms.tools import find_build_root


rule build:
    input:
        lambda wildcards: list_native_sources(wildcards.toolchain),
        compiler=lambda wildcards: str(note_compiler(find_build_root(), wildcards.toolchain)),
    output:
        touch(str(find_build_root() / "build" / "{toolchain}" / "built")),
    log:
        str(find_build_root() / "build" / "logs" / "build.{toolchain}.log"),
    localrule: True
    message:
        "compiling the native programs for {wildcards.toolchain}"
    shell:
        COMMODEL + " build {wildcards.toolchain}"
