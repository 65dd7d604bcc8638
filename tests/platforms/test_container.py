"""Commands that run in an image, and the keys of a platform file about images."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.plan.config import TRUSTED_VARIABLE, load_platform
from commodel.platforms.container import Image, compute_image_digest, make_prefix
from commodel.platforms.launchers import LAUNCHERS, Job
from commodel.platforms.mpi_libraries import find_kind
from tests.configfiles import NETWORK

LOCAL = "launcher: local\nnodes: 1\ncores: 2\n"
SLURM = "launcher: slurm\nnodes: 2\ncores: 2\n"
HOSTS = "launcher: hosts\nnodes: 2\ncores: 2\nhosts: {names: [a, b]}\n"
IMAGE = Image(Path("/images/it.sif"), "sha256:0", "hybrid")
BOUND = Image(Path("/images/it.sif"), "sha256:0", "bind", "/opt/mpi", ("/opt/fabric",))


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.sif").write_bytes(b"an image")
    (tmp_path / "platform.yaml").write_text(LOCAL)
    return tmp_path


def platform(project, container, text=LOCAL):
    (project / "platform.yaml").write_text(f"{text}container: {container}\n")
    return load_platform(project / "platform.yaml")


def test_the_folder_of_the_batch_is_there_and_nothing_of_the_environment_is_lost():
    argv = make_prefix(IMAGE, "/bin/apptainer", Path("/p/raw/b"), Path("/p/raw/b/.work"))
    assert argv == (
        *("/bin/apptainer", "--silent", "exec", "--bind", "/p/raw/b"),
        *("--pwd", "/p/raw/b/.work", "/images/it.sif"),
    )
    assert "--sharens" in make_prefix(
        IMAGE, "/bin/apptainer", Path("/p"), Path("/p"), share_namespace=True
    )


def test_the_mpi_of_the_host_comes_first_and_cannot_be_written():
    argv = make_prefix(BOUND, "apptainer", Path("/p"), Path("/p"))
    binds = [argv[at + 1] for at, part in enumerate(argv) if part == "--bind"]
    assert binds == ["/p", "/opt/mpi:/opt/mpi:ro", "/opt/fabric:/opt/fabric:ro"]
    assert argv[argv.index("--env") + 1].startswith("LD_LIBRARY_PATH=/opt/mpi/lib:")


@pytest.mark.parametrize("folder", ["/p,q", "/p:ro"])
def test_a_folder_that_would_be_read_as_options_is_refused(folder):
    with pytest.raises(UserError, match="cannot mount it"):
        make_prefix(IMAGE, "apptainer", Path(folder), Path(folder))


@pytest.mark.parametrize(("name", "text"), [("local", LOCAL), ("slurm", SLURM), ("hosts", HOSTS)])
def test_every_launcher_that_is_real_starts_the_image(name, text, project):
    prefix = make_prefix(IMAGE, "apptainer", project, project)
    job = Job(
        platform=platform(project, "{image: it.sif}", text),
        starter="start",
        program="/opt/commodel/build/mpi/player",
        arguments=("--out", "x"),
        nodes=(0, 0),
        names=("a", "b"),
        hostfile=Path("hosts"),
        image_command=prefix,
    )
    argv = LAUNCHERS[name].argv(job)
    assert argv[-len(prefix) - 3 :] == [*prefix, "/opt/commodel/build/mpi/player", "--out", "x"]
    assert "start" in argv[: -len(prefix)]
    drives = replace(job, gpus=(-1, 0))
    assert "exec --nv --bind" in " ".join(LAUNCHERS[name].argv(drives))


def test_the_image_digest_follows_the_current_file_content(project):
    file = project / "it.sif"
    assert compute_image_digest(file) == f"sha256:{hashlib.sha256(b'an image').hexdigest()}"
    file.write_bytes(b"another one")
    assert compute_image_digest(file) == f"sha256:{hashlib.sha256(b'another one').hexdigest()}"


def test_another_image_is_another_platform_and_another_overhead_sheet_is_not(project):
    bare = load_platform(project / "platform.yaml").digest
    first = platform(project, "{image: it.sif}").digest
    assert platform(project, "{image: it.sif, native: bare}").digest == first
    (project / "it.sif").write_bytes(b"another one")
    assert len({bare, first, platform(project, "{image: it.sif}").digest}) == 3
    assert platform(project, "{image: it.sif}").image.as_json() == {
        "image": "it.sif",
        "digest": f"sha256:{hashlib.sha256(b'another one').hexdigest()}",
        "model": "hybrid",
        "native": "",
    }


@pytest.mark.parametrize(
    ("container", "complaint"),
    [
        ("{image: no.sif}", "container.image: .*no.sif cannot be read: No such file"),
        (
            "{image: ../it.sif}",
            "container.image: found '../it.sif', wanted a file below the project",
        ),
        (
            "{image: out/it.sif}",
            "container.image: found 'out/it.sif', which is a link that leaves .*TRUSTED=/.*/outside[0-9]+$",
        ),
        (
            "{image: /it.sif}",
            "container.image: found '/it.sif', which is in no folder that you trust; .*: export COMMODEL_TRUSTED=/",
        ),
        (
            "{image: it.sif, model: bind, mpi: /opt/mpi}",
            "container.mpi: found '/opt/mpi', which is in no .*TRUSTED=/opt/mpi$",
        ),
        (
            "{image: it.sif, bind: [/a, /b]}",
            r"container.bind\[0\]: found '/a', which is in no folder",
        ),
        (
            "{image: pipe}",
            "container.image: .*pipe: cannot be read: found a pipe or a device, wanted a file",
        ),
        ("{image: --help}", "container.image: found '--help'"),
        ("{image: 'it.sif;true'}", "container.image: found 'it.sif;true'"),
        ("{image: 'docker://it'}", "container.image: found 'docker://it'"),
        ("{image: it.sif, model: bind}", "container: found no key 'mpi'"),
        (
            "{image: it.sif, mpi: /opt/mpi}",
            "container.mpi: found '/opt/mpi', which only model: bind has",
        ),
        (
            "{image: it.sif, model: bind, mpi: opt}",
            "container.mpi: found 'opt', wanted an absolute path",
        ),
        ("{image: it.sif, bind: ['/etc:/opt']}", r"container.bind\[0\]: found '/etc:/opt'"),
        ("{image: it.sif, bind: [/a/../etc]}", r"container.bind\[0\]: found '/a/../etc'"),
        ("{image: it.sif, options: --cleanenv}", "container.options: found an unknown key"),
    ],
)
def test_an_invalid_container_section_is_refused_naming_the_key(
    container, complaint, project, tmp_path_factory, monkeypatch
):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "it.sif").write_bytes(b"an image")
    (project / "out").symlink_to(outside)
    os.mkfifo(project / "pipe")
    monkeypatch.delenv(TRUSTED_VARIABLE, raising=False)
    with pytest.raises(UserError, match=rf"platform.yaml:4: {complaint}"):
        platform(project, container)


def test_images_and_binds_in_trusted_folders_are_accepted(project, tmp_path_factory, monkeypatch):
    """For a symbolic link, the target has to be in a trusted folder."""
    outside = tmp_path_factory.mktemp("apps")
    (outside / "it.sif").write_bytes(b"an image")
    (outside / "mpi").mkdir()
    (project / "out").symlink_to(outside)
    monkeypatch.setenv(TRUSTED_VARIABLE, f"relative:/nowhere:{outside}")
    for image in (outside / "it.sif", "out/it.sif"):
        loaded = platform(
            project, f"{{image: {image}, model: bind, mpi: {outside}/mpi, bind: [{outside}]}}"
        )
        assert loaded.image.file == project / image
    with pytest.raises(UserError, match="which is in no folder that you trust"):
        platform(project, f"{{image: it.sif, bind: [{outside}-2]}}")


def test_a_simulated_platform_with_a_container_section_is_refused(project):
    (project / "net.xml").write_text(NETWORK)
    with pytest.raises(
        UserError, match="container: found a section that launcher 'simgrid' does not have"
    ):
        platform(
            project,
            "{image: it.sif}",
            "launcher: simgrid\nnodes: 1\ncores: 1\nsimgrid: {file: net.xml}\n",
        )


@pytest.mark.parametrize(
    ("said", "of"),
    [
        ("MPICH Version:      5.0.2", "MPICH"),
        ("HYDRA build details:\n    Version:                                 5.0.2", "MPICH"),
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI"),
        ("mpirun (Open MPI) 4.1.4", "Open MPI"),
        ("mpiexec (OpenRTE) 4.1.4", "Open MPI"),
        ("slurm-wlm 22.05.8", ""),
    ],
)
def test_version_texts_of_libraries_and_starters_give_the_mpi_kind(said, of):
    assert find_kind(said) == of
