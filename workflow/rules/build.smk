from commodel.platforms.build import compiler_note
from commodel.platforms.tools import native_sources, workshop


rule build:
    input:
        lambda wildcards: native_sources(wildcards.toolchain),
        compiler=lambda wildcards: str(compiler_note(workshop(), wildcards.toolchain)),
    output:
        touch(str(workshop() / "build" / "{toolchain}" / "built")),
    log:
        str(workshop() / "build" / "logs" / "build.{toolchain}.log"),
    localrule: True
    message:
        "compiling the native programs for {wildcards.toolchain}"
    shell:
        COMMODEL + " build {wildcards.toolchain}"
