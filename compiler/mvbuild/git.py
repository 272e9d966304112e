"""git ref + project directory -> the project's files at that ref, and which files differ. The repository is not changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError, did_you_mean, error

_SUFFIXES = (".sql", ".yml", ".yaml", ".csv", ".md", ".lock")
PACKAGES = "dbt_packages"
"""The folder of installed packages."""
_FILE, _LINK = ("100644", "100755"), "120000"
_NEVER = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1"}
"""Messages in English, no update of the index, no prompts, no patterns in paths."""
OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
"""Variables that git sets for hooks may refer to another repository than the project's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit that a ref names, and the project's path in its tree."""

    ref: str
    id: str
    top: Path
    """The top directory of the working copy."""
    folder: str
    """The path of the project below it, empty at the top."""


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    id: str
    path: str


def commit_of(root: Path, ref: str) -> Commit:
    """The commit that `ref` names in the repository of a project. `a...b` is the merge base of both, as in git diff, and `a...` that of a
    and HEAD. Raises ProjectError if git, a repository or the ref is missing."""
    root = root.resolve()
    top = Path(_git(root, "rev-parse", "--show-toplevel").rstrip("\n"))
    one, is_base, other = ref.partition("...")
    ids = [_id(root, top, name or "HEAD") for name in ((one, other) if is_base else (one,))]
    folder = os.path.relpath(root, top.resolve()).replace(os.sep, "/")
    return Commit(ref=ref, id=_merge_base(root, ref, ids) if is_base else ids[0], top=top, folder="" if folder == "." else folder)


@contextmanager
def checked_out(commit: Commit) -> Iterator[Path | None]:
    """A temporary directory with the project's files, which is deleted afterwards; None if there was no such directory."""
    entries = list(_tree(commit, commit.folder))
    if not entries:
        yield None
        return
    with TemporaryDirectory(prefix="mvbuild-ref-") as directory:
        if commit.folder and _leaves_its_folder(commit, entries):
            entries = list(_tree(commit, ""))
        _write(commit, entries, Path(directory))
        project = Path(directory, commit.folder)
        installed = commit.top / commit.folder / PACKAGES
        if installed.is_dir() and not (project / PACKAGES).exists():
            # Packages are not committed. packages.lock, which is, says what their files must be.
            (project / PACKAGES).symlink_to(installed)
        yield project


def changed_files(commit: Commit) -> frozenset[str]:
    """Paths below the project, relative to it, of files that differ between the working copy and the commit, including new ones."""
    below = commit.top / commit.folder
    changed = _git(below, "diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z", commit.id, "--", ".")
    new = _git(below, "ls-files", "--others", "--exclude-standard", "-z", "--", ".")
    return frozenset(path for path in (*changed.split("\0"), *new.split("\0")) if path)


# --- files -------------------------------------------------------------------------------------------------------------------------


def _tree(commit: Commit, folder: str) -> Iterator[_Entry]:
    listed = _git(commit.top, "ls-tree", "-r", "-z", "--full-tree", commit.id, "--", *([folder + "/"] if folder else []))
    for line in listed.split("\0"):
        facts, _, path = line.partition("\t")
        mode, kind, id_ = [*facts.split(), "", "", ""][:3]
        if kind == "blob" and (mode == _LINK or (mode in _FILE and PurePosixPath(path).suffix.lower() in _SUFFIXES)):
            yield _Entry(mode, id_, path)


def _leaves_its_folder(commit: Commit, entries: Sequence[_Entry]) -> bool:
    """Whether a link, or a path of the project file, may lead to files of the repository outside the project."""
    if any(entry.mode == _LINK for entry in entries):
        return True
    files = [e for e in entries if PurePosixPath(e.path).parent == PurePosixPath(commit.folder) and e.path.endswith((".yml", ".yaml"))]
    return any(b".." in content for _, content in _blobs(commit, files))


def _write(commit: Commit, entries: Sequence[_Entry], directory: Path) -> None:
    for entry, content in _blobs(commit, entries):
        file = directory / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        if entry.mode == _LINK:
            _link(file, os.fsdecode(content), directory)
        else:
            file.write_bytes(content)


def _link(file: Path, target: str, directory: Path) -> None:
    """Links are followed only within the repository: files outside of it are not from the commit."""
    leads_to = os.path.normpath(file.parent / target)
    if not Path(target).is_absolute() and Path(leads_to).is_relative_to(directory):
        file.symlink_to(target)


def _blobs(commit: Commit, entries: Sequence[_Entry]) -> Iterator[tuple[_Entry, bytes]]:
    """All of them from one process."""
    answer = _run(commit.top, ("cat-file", "--batch"), "".join(f"{entry.id}\n" for entry in entries).encode())
    at = 0
    for entry in entries:
        end = answer.index(b"\n", at)
        header = answer[at:end].split()
        if len(header) != 3:
            message = f"'{commit.ref}' contains {entry.path}, whose content is not in this copy of the repository"
            raise ProjectError([error("bad-ref", message, help="Fetch it: `git fetch --refetch`.")])
        size = int(header[2])
        yield entry, answer[end + 1 : end + 1 + size]
        at = end + 1 + size + 1


# --- refs --------------------------------------------------------------------------------------------------------------------------


def _id(root: Path, top: Path, ref: str) -> str:
    done = _call(root, ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"))
    found = done.stdout.decode("ascii", "replace").strip()
    if done.returncode == 0 and found:
        return found
    raise ProjectError([error("bad-ref", f"There is no '{ref}' in the git repository {top}", help=_advice(root, ref))])


def _advice(root: Path, ref: str) -> str:
    if _call(root, ("rev-parse", "--verify", "--quiet", "HEAD")).returncode != 0:
        return "The repository has no commits yet."
    known = _git(root, "for-each-ref", "--format=%(refname:short)").split()
    remote = [name for name in known if name.partition("/")[2] == ref]
    if remote:
        return f"Did you mean '{remote[0]}'?"
    if _git(root, "rev-parse", "--is-shallow-repository").strip() == "true":
        return f"This is a shallow clone. Fetch it first: `git fetch --depth=1 origin {ref}:{ref}`, or clone with `fetch-depth: 0`."
    near = did_you_mean(ref, known)
    return near if near.startswith("Did") else "Fetch it first, or name a branch, a tag or a commit."


def _merge_base(root: Path, ref: str, ids: Iterable[str]) -> str:
    done = _call(root, ("merge-base", *ids))
    if done.returncode == 0:
        return done.stdout.decode("ascii").split()[0]
    shallow = _git(root, "rev-parse", "--is-shallow-repository").strip() == "true"
    help = "This is a shallow clone: fetch the history with `git fetch --unshallow`." if shallow else "Name one of the two."
    raise ProjectError([error("bad-ref", f"'{ref}' has no merge base: the two share no commit", help=help)])


# --- git ---------------------------------------------------------------------------------------------------------------------------


def _git(directory: Path, *arguments: str) -> str:
    """The output of git. Paths that are not UTF-8 keep their bytes."""
    return os.fsdecode(_run(directory, arguments))


def _run(directory: Path, arguments: Sequence[str], given: bytes = b"") -> bytes:
    done = _call(directory, arguments, given)
    if done.returncode == 0:
        return done.stdout
    lines = [line.strip() for line in os.fsdecode(done.stderr).splitlines() if line.strip()]
    if any("not a git repository" in line for line in lines):
        raise ProjectError([error("no-git", f"{directory} is not in a git repository")])
    # For a repository of another user, git shows the command that trusts it.
    advice = next((line for line in lines if line.startswith("git config")), "")
    message = lines[0].removeprefix("fatal: ") if lines else "no message"
    raise ProjectError([error("no-git", f"git {arguments[0]} failed: {message}", help=f"Run `{advice}`." if advice else "")])


def _call(directory: Path, arguments: Sequence[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {key: value for key, value in os.environ.items() if key not in OF_HOOKS} | _NEVER
    try:
        return subprocess.run(["git", "-C", str(directory), *arguments], input=given, capture_output=True, env=env, check=False)
    except FileNotFoundError as exc:
        raise ProjectError([error("no-git", "The program git was not found")]) from exc
    except OSError as exc:
        raise ProjectError([error("no-git", f"git cannot be started: {exc.strerror or exc}")]) from exc
