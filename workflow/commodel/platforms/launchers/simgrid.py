"""A simulated cluster: smpirun on SimGrid XML. Time is simulated and repeatable, whatever this machine does."""

from commodel.platforms.launchers import Job, Launcher


def argv(job: Job) -> list[str]:
    settings = {"smpi/simulate-computation": "no"} | job.platform.simgrid.config
    options = [f"--cfg={name}:{value}" for name, value in sorted(settings.items())]
    platform = ["-platform", str(job.network), "-hostfile", str(job.hostfile)]
    # Ranks load copies of the program, which the system's folder for temporary files may forbid (noexec).
    return [
        "env",
        "TMPDIR=.",
        job.starter,
        "-np",
        str(job.ranks),
        *platform,
        "--log=root.thres:critical",
        *options,
        *job.command,
    ]


LAUNCHER = Launcher(
    name="simgrid",
    title="simulated by SimGrid",
    starters=("smpirun",),
    toolchain="smpi",
    argv=argv,
    hostfile=True,
    simulated=True,
    busy=False,
)
