#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the guest of the interop tests: a kernel of the distribution with siw, the software iWARP
driver of Linux, and the few programs that the tests run there.

    make_guest.py CACHE

Everything comes as packages from where the system's apt gets them, is unpacked below CACHE, and
nothing of it is installed. Debian builds its kernels without siw, so the driver is built here from
the sources of exactly that kernel; its constants become parameters that can be changed while it
runs, with their defaults kept. That is the only change.

CACHE then has vmlinux (or vmlinuz), initramfs.cpio and guest.json; a second run only looks whether
they are there. Exit status 77, with the reason: this machine cannot have the guest.
"""

import glob
import hashlib
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
META = "linux-image-amd64"
TOOLS = ("apt-cache", "apt-get", "dpkg-deb", "gcc", "make", "readelf")

# What runs in the guest. Their libraries are found by looking at the programs.
PACKAGES = ("busybox-static", "rdmacm-utils", "iproute2", "ibverbs-providers", "perftest")
PROGRAMS = {"rping": "bin", "ucmatose": "bin", "rdma_client": "bin", "rdma_server": "bin",
            "rdma": "sbin", "ib_send_bw": "bin", "ib_write_bw": "bin", "ib_read_bw": "bin"}
# dlopen()ed, so seen in no program: the verbs provider, and what ends a thread.
EXTRA_LIBRARIES = ("libsiw-rdmav*.so", "libgcc_s.so.1")

# Modules in the order of loading; those they need come before each by themselves.
MODULES = ("virtio_pci", "virtio_net", "virtio_console", "configfs", "crc32c_generic", "crc32c_intel", "rdma_ucm",
           "ib_uverbs", "siw")
BOOLS = ("try_gso", "mpa_crc_required", "mpa_crc_strict", "siw_tcp_nagle", "peer_to_peer")


class Skip(Exception):
    """The machine lacks something; the text says what."""


def say(text):
    print(f"make_guest: {text}", flush=True)


def output(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "LC_ALL": "C"}, **more).stdout


# ---- Packages ------------------------------------------------------------------------------------

class Packages:
    """Downloads packages and unpacks them, each once."""

    def __init__(self, cache):
        self.downloads = cache / "downloads"
        self.downloads.mkdir(parents=True, exist_ok=True)
        self.updated = False

    def update(self):
        """The lists may be older than the mirror, or not there at all."""
        if self.updated or os.geteuid() != 0 or os.environ.get("SOFTNDK_INSTALL") == "0":
            return False
        self.updated = True
        say("apt-get update")
        return subprocess.run(["apt-get", "update", "-qq"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, check=False).returncode == 0

    def depends(self, package):
        text = output("apt-cache", "depends", package, stderr=subprocess.DEVNULL)
        return re.findall(r"^\s*\|?Depends: ([^<\s]+)$", text, re.MULTILINE)

    def candidates(self, *packages):
        """Package -> version, for those that can be had. One call: each reads all of apt's lists."""
        text = output("apt-cache", "policy", *packages)
        found = re.findall(r"^(\S+):\n(?:  .*\n)*?  Candidate: (\S+)$", text, re.MULTILINE)
        return {name: version for name, version in found if version != "(none)"}

    def kernel(self):
        """Name and version of the image package that the distribution means."""
        for attempt in range(2):
            try:
                names = [name for name in self.depends(META) if name.startswith("linux-image-")]
            except subprocess.CalledProcessError:
                names = []
            found = self.candidates(*names) if names else {}
            if found:
                return next(iter(found.items()))
            if attempt or not self.update():
                break
        raise Skip(f"apt knows no kernel behind {META} (Debian on amd64)")

    def fetch(self, where, *packages):
        """Unpacks packages, NAME or NAME=VERSION, below where."""
        where.mkdir(parents=True, exist_ok=True)
        wanted = [package for package in packages if not (where / f".{package}").exists()]
        if not wanted:
            return
        self.download(wanted)
        for package in wanted:
            name = package.split("=")[0]
            files = sorted(self.downloads.glob(f"{name}_*.deb"), key=os.path.getmtime)
            subprocess.run(["dpkg-deb", "-x", files[-1], where], check=True)
            (where / f".{package}").touch()
            for file in files:
                file.unlink()

    def download(self, packages):
        command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::http::Timeout=60",
                   "download", *packages]
        for attempt in range(2):
            done = subprocess.run(command, cwd=self.downloads, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  check=False)
            if done.returncode == 0:
                return
            if attempt or not self.update():
                break
        reason = (done.stderr.strip().splitlines() or ["apt-get says nothing"])[-1]
        raise Skip(f"cannot download {' '.join(packages)}: {reason}")


# ---- The kernel ----------------------------------------------------------------------------------

def unpack_kernel(image, out):
    """The bare kernel inside a vmlinuz: unpacking it is slow without hardware acceleration."""
    data = image.read_bytes()
    for magic, unpack in ((b"\xfd7zXZ\0", unpack_xz), (b"\x28\xb5\x2f\xfd", unpack_zstd)):
        at = data.find(magic)
        kernel = unpack(data[at:]) if at >= 0 else b""
        if kernel[:4] == b"\x7fELF":
            out.write_bytes(kernel)
            return True
    return False


def unpack_xz(data):
    try:
        return lzma.LZMADecompressor().decompress(data)
    except lzma.LZMAError:
        return b""


def unpack_zstd(data):
    if not shutil.which("zstd"):
        return b""
    return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout


def make_headers(packages, where, release, version):
    """The directory to build modules in."""
    names = [f"linux-headers-{release}"]
    names += [name for name in packages.depends(names[0])
              if name.startswith(("linux-headers-", "linux-kbuild-"))]
    packages.fetch(where, *(f"{name}={version}" for name in names), "libelf1")
    headers = where / "usr/src" / f"linux-headers-{release}"
    for file in (headers / "Makefile", headers / ".kernelvariables"):
        if file.exists():
            text = file.read_text()
            file.write_text(re.sub(r"(?<![\w/.-])/usr/(src|lib)/", rf"{where}/usr/\1/", text))
    return headers


def siw_sources(packages, cache, release, version):
    """The driver's directory out of the kernel's sources."""
    sources = cache / "siw"
    if (sources / "siw_main.c").exists():
        return sources
    series = ".".join(release.split(".")[:2])
    packages.fetch(cache / "source", f"linux-source-{series}={version}")
    archive = next((cache / "source/usr/src").glob("linux-source-*.tar.xz"))
    say("taking siw out of the kernel's sources")
    fresh = cache / "siw.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    with tarfile.open(archive, "r|xz") as tar:
        seen = False
        for member in tar:
            inside = "/drivers/infiniband/sw/siw/" in member.name
            if inside and member.isfile():
                (fresh / pathlib.PurePath(member.name).name).write_bytes(
                    tar.extractfile(member).read())
            elif seen and not inside:
                break
            seen = seen or inside
    shutil.rmtree(cache / "source")
    with_parameters(fresh)
    fresh.rename(sources)
    return sources


def with_parameters(sources):
    """Constants of the driver become parameters."""
    main, header = sources / "siw_main.c", sources / "siw.h"
    text, declared = main.read_text(), header.read_text()
    for name in BOOLS:
        text, changed = re.subn(rf"^const bool {name}( = \w+)?;",
                                rf"bool {name}\1;\nmodule_param({name}, bool, 0644);", text,
                                flags=re.MULTILINE)
        if changed != 1:
            raise Skip(f"this kernel's siw has no constant {name}")
        declared = re.sub(rf"^extern const bool {name};", f"extern bool {name};", declared,
                          flags=re.MULTILINE)
    text, changed = re.subn(r"^(u_char mpa_version = .*;)",
                            r"\1\nmodule_param(mpa_version, byte, 0644);", text,
                            flags=re.MULTILINE)
    if changed != 1:
        raise Skip("this kernel's siw has no variable mpa_version")
    main.write_text(text)
    header.write_text(declared)


def build_siw(sources, headers, where):
    module = sources / "siw.ko"
    if module.exists():
        return module
    say("building siw.ko")
    log = sources / "build.log"
    command = ["make", "-j", str(os.cpu_count() or 1), "-C", headers, f"M={sources}",
               "CONFIG_RDMA_SIW=m", "CONFIG_DEBUG_INFO_BTF=", "CONFIG_DEBUG_INFO_BTF_MODULES=",
               "modules"]
    wanted = re.search(r"^\S*CC\s*:?=\s*(?:\$\(CROSS_COMPILE\))?(\S+)",
                       read_if_there(headers / ".kernelvariables"), re.MULTILINE)
    if not wanted or not shutil.which(wanted[1]):
        command.insert(1, "CC=gcc")
    libraries = where / "usr/lib/x86_64-linux-gnu"
    with log.open("w") as file:
        status = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False,
                                env={**os.environ, "LD_LIBRARY_PATH": str(libraries),
                                     "MAKEFLAGS": "", "MFLAGS": ""}).returncode
    if status or not module.exists():
        print("\n".join(log.read_text(errors="replace").splitlines()[-20:]))
        raise Skip(f"siw.ko was not built: {log}")
    return module


def read_if_there(path):
    return path.read_text() if path.exists() else ""


class Modules:
    """Kernel modules by name, and what each needs."""

    def __init__(self, tree, own):
        self.files = {}
        for path in [*tree.rglob("*.ko"), *tree.rglob("*.ko.*"), own]:
            self.files[path.name.split(".ko")[0].replace("-", "_")] = path

    def data(self, name):
        path = self.files[name]
        data = path.read_bytes()
        if path.suffix == ".xz":
            return lzma.decompress(data)
        if path.suffix == ".zst":
            return unpack_zstd(data)
        return data

    def in_order(self, names):
        order = []

        def add(name):
            if name in self.files and name not in order:
                found = re.search(rb"\0depends=([^\0]*)\0", self.data(name))
                for other in (found[1].decode().split(",") if found else []):
                    add(other.replace("-", "_"))
                order.append(name)

        for name in names:
            add(name)
        return order


# ---- The root file system ------------------------------------------------------------------------

class Archive:
    """A cpio archive in the form that the kernel unpacks."""

    def __init__(self):
        self.pieces, self.names = [], set()

    def add(self, name, mode, data=b""):
        parent = os.path.dirname(name)
        if parent and parent not in self.names:
            self.add(parent, 0o040755)
        if name in self.names:
            return
        self.names.add(name)
        number = len(self.names)
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        self.pieces += [head + b"\0" * (-len(head) % 4), data + b"\0" * (-len(data) % 4)]

    def file(self, name, data, executable=False):
        self.add(name, 0o100755 if executable else 0o100644, data)

    def link(self, name, target):
        self.add(name, 0o120777, target.encode())

    def write(self, path):
        self.add("TRAILER!!!", 0)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(b"".join(self.pieces))
        fresh.rename(path)


def needed(program):
    """Names of the libraries that an ELF file asks for."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(program)))


class Userland:
    """Programs out of the packages, and the libraries they need."""

    def __init__(self, packages, where):
        self.packages, self.where = packages, where
        packages.fetch(where, *PACKAGES)
        self.fetch_libraries()

    def fetch_libraries(self):
        """The packages of all libraries that ours depend on, directly or not."""
        text = output("apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests",
                      "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", *PACKAGES)
        names = sorted(set(re.findall(r"^(lib[a-z0-9.+-]+|zlib1g)$", text, re.MULTILINE)))
        names = [name for name in names if not re.match(r"libc-bin|libdebconf|libperl", name)]
        self.packages.fetch(self.where, *self.packages.candidates(*names))

    def find(self, name):
        for directory in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/bin", "bin",
                          "usr/sbin", "sbin", "usr/lib/x86_64-linux-gnu/libibverbs"):
            found = glob.glob(str(self.where / directory / name))
            if found:
                return pathlib.Path(found[0])
        raise Skip(f"{name} is in none of the packages")

    def put(self, archive):
        busybox = self.find("busybox")
        archive.file("bin/busybox", busybox.read_bytes(), executable=True)
        for name, place in PROGRAMS.items():
            self.put_elf(archive, self.find(name), f"usr/{place}/{name}")
        for pattern in EXTRA_LIBRARIES:
            file = self.find(pattern)
            place = "libibverbs/" if "rdmav" in file.name else ""
            self.put_elf(archive, file, f"usr/lib/x86_64-linux-gnu/{place}{file.name}")
        archive.file("etc/libibverbs.d/siw.driver",
                     (self.where / "etc/libibverbs.d/siw.driver").read_bytes())
        archive.link("lib64", "usr/lib/x86_64-linux-gnu")
        archive.link("lib/x86_64-linux-gnu", "../usr/lib/x86_64-linux-gnu")

    def put_elf(self, archive, file, name):
        if name in archive.names:
            return
        archive.file(name, file.read_bytes(), executable=True)
        for library in needed(file):
            self.put_elf(archive, self.find(library), f"usr/lib/x86_64-linux-gnu/{library}")


def make_initramfs(userland, modules, path):
    archive = Archive()
    for directory in ("proc", "sys", "dev", "tmp", "run", "root"):
        archive.add(directory, 0o040755)
    userland.put(archive)
    archive.file("init", (HERE / "guest_init").read_bytes(), executable=True)
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    archive.file("etc/group", b"root:x:0:\n")
    archive.file("etc/hosts", b"127.0.0.1 localhost\n")
    archive.file("etc/nsswitch.conf", b"hosts: files\npasswd: files\ngroup: files\n")
    for number, name in enumerate(modules.in_order(MODULES)):
        archive.file(f"modules/{number:02}-{name}.ko", modules.data(name))
    archive.write(path)


# ---- Main ----------------------------------------------------------------------------------------

def check_machine(cache):
    if os.uname().machine != "x86_64":
        raise Skip(f"the guest is made for x86_64, this is {os.uname().machine}")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise Skip(f"missing here: {', '.join(missing)}")
    if re.search(r"\s", str(cache)):
        raise Skip(f"modules cannot be built in a directory with blanks in its name: {cache}")


def recipe():
    """Changes when what is built here changes."""
    digest = hashlib.sha256()
    for name in ("make_guest.py", "guest_init"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def is_made(cache):
    try:
        made = json.loads((cache / "guest.json").read_text())
    except (OSError, ValueError):
        return False
    return made.get("recipe") == recipe()


def make(cache):
    check_machine(cache)
    packages = Packages(cache)
    image, version = packages.kernel()
    release = image.removeprefix("linux-image-")
    say(f"kernel {release}, {version}")
    tree = cache / f"kernel-{release}-{version}"
    packages.fetch(tree / "image", f"{image}={version}")
    vmlinuz = tree / "image/boot" / f"vmlinuz-{release}"
    kernel = tree / "vmlinux"
    if not kernel.exists() and not unpack_kernel(vmlinuz, kernel):
        kernel = vmlinuz
    headers = make_headers(packages, tree / "headers", release, version)
    sources = siw_sources(packages, tree, release, version)
    module = build_siw(sources, headers, tree / "headers")
    userland = Userland(packages, cache / "userland")
    say("packing")
    modules = Modules(next((tree / "image").rglob(f"modules/{release}/kernel")), module)
    make_initramfs(userland, modules, cache / "initramfs.cpio")
    guest = {"recipe": recipe(), "kernel": str(kernel.relative_to(cache)),
             "release": release, "version": version,
             "rdma-core": packages.candidates("rdmacm-utils")["rdmacm-utils"],
             "perftest": packages.candidates("perftest")["perftest"]}
    (cache / "guest.json").write_text(json.dumps(guest, indent=4) + "\n")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip())
        return 2
    cache = pathlib.Path(sys.argv[1]).resolve()
    if is_made(cache):
        return 0
    try:
        cache.mkdir(parents=True, exist_ok=True)
        make(cache)
    except (Skip, OSError, subprocess.CalledProcessError, tarfile.TarError, lzma.LZMAError,
            StopIteration, KeyError) as reason:
        # Whatever it was, a package that is cut short, say, or laid out in another way.
        print(f"make_guest: skipped: {type(reason).__name__}: {reason}"
              if not isinstance(reason, Skip) else f"make_guest: skipped: {reason}")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
