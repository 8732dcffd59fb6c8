#!/usr/bin/env python3
"""Builds the guide as a site that needs no network: the pages of this folder, every README of the repository, and the API reference of the headers.

Usage: build_site.py --out FOLDER [--without-api]

Sphinx and its theme come from PyPI (requirements.txt, into FOLDER.venv), doxygen from the system. A broken link is an error."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
LIBRARIES = ("env", "replay", "collectives", "learner", "actors", "experiments")
PAGES = ("first_hour", "take_away", "pixels", "own_environment", "own_agent", "own_actor", "python", "cluster", "gpu", "stuck", "reproduce", "tuning",
         "architecture", "comparison")  # pages of this folder, in order
MOST_BYTES = 2 << 20  # maximum size of a linked file that is copied into the site
LEXERS = {"textproto": "text"}  # languages that Sphinx does not know
FENCE = re.compile(r"^```(\w+)[^\n]*$", re.M)
LINK = re.compile(r"(!?\[[^\]\n]*(?:\][^\[\]\n]*)?\])\(([^)\s]+)\)")


def texts():
    """Returns every page in the repository: READMEs, papers, results and the pages of this folder."""
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard", "-z", "*.md"], check=True, capture_output=True).stdout
    return sorted(SOURCE / name for name in listed.decode().split("\0") if name and (SOURCE / name).exists())


class Stage:
    """The pages in the folder that Sphinx reads, with links that are valid there."""

    def __init__(self, folder):
        self.folder = folder
        self.pages = texts()

    def write(self):
        for page in self.pages:
            place = self.folder / self.name(page)
            place.parent.mkdir(parents=True, exist_ok=True)
            text = FENCE.sub(lambda fence: "```" + LEXERS.get(fence.group(1), fence.group(1)), page.read_text())
            place.write_text(self.without_code(text, lambda part: LINK.sub(lambda link: self.link(page, link), part)))

    @staticmethod
    def name(page):
        """Returns the name of a page in the site; the repository's README is the first page."""
        return pathlib.Path("index.md") if page == SOURCE / "README.md" else page.relative_to(SOURCE)

    @staticmethod
    def without_code(text, change):
        """Applies `change` to everything but code, which is in fenced blocks or between backticks."""
        parts = re.split(r"(^```.*?^```$|`[^`]+`)", text, flags=re.M | re.S)
        hidden = parts[1::2]  # the text of a link may contain code, so all code is taken out before links are changed
        shown = change("".join("\0" if i % 2 else part for i, part in enumerate(parts)))
        return re.sub("\0", lambda _: hidden.pop(0), shown)

    def link(self, page, found):
        words, target = found.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path or target.startswith("mailto:"):
            return found.group(0)
        there = (page.parent / path).resolve()
        if not there.is_relative_to(SOURCE) or not there.exists():
            raise SystemExit(f"{page.relative_to(SOURCE)}: the link to {target} leads nowhere")
        if there.is_dir():
            there = there / "README.md"
        if there not in self.pages:
            if not there.is_file() or there.stat().st_size > MOST_BYTES:
                return words.lstrip("![").rstrip("]")  # a folder without a page, or a large file: only its name
            copy = self.folder / there.relative_to(SOURCE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there, copy)
        return f"{words}({os.path.relpath(self.name(there), self.name(page).parent)}{'#' + anchor if anchor else ''})"

    def rooms(self, library):
        """Returns the READMEs below a library, beginning with the library's own."""
        names = [str(page.relative_to(SOURCE)) for page in self.pages if page.name == "README.md" and page.relative_to(SOURCE).parts[0] == library]
        return sorted((name for name in names if "/guide/" not in name), key=lambda name: (name.count("/"), name))

    def write_contents(self, with_api):
        """Writes the tables of contents at the end of the first page, from which the theme takes the navigation."""
        guide = "experiments/guide/"
        parts = [("Guide", [guide + "README.md", *(f"{guide}{page}.md" for page in PAGES)])]
        parts += [(f"Rooms of {library}/", self.rooms(library)) for library in LIBRARIES]
        listed = {name for _, names in parts for name in names} | {"README.md"}
        parts.append(("Project", [str(page.relative_to(SOURCE)) for page in self.pages if str(page.relative_to(SOURCE)) not in listed]))
        text = ""
        for caption, names in parts:
            lines = "\n".join(names)
            text += f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n:caption: {caption}\n\n{lines}\n```\n"
        if with_api:
            text += '\n<p><a href="api/index.html">API reference of all headers</a></p>\n'  # not a Sphinx page
        with (self.folder / "index.md").open("a") as index:
            index.write(text)


CONF = """
project = "Troupe"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Troupe"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
exclude_patterns = []
"""


def make_environment(folder):
    wanted = (HERE / "requirements.txt").read_text()
    ready = folder / "ready"
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", "-r", HERE / "requirements.txt"], check=True)
        ready.write_text(wanted)
    return folder / "bin/sphinx-build"


def write_api(out):
    settings = {
        "PROJECT_NAME": "Troupe", "INPUT": " ".join(LIBRARIES), "RECURSIVE": "YES", "FILE_PATTERNS": "*.hpp", "EXCLUDE_PATTERNS": "*-inl.hpp",
        "OUTPUT_DIRECTORY": out, "HTML_OUTPUT": "api", "GENERATE_LATEX": "NO", "EXTRACT_ALL": "YES", "JAVADOC_AUTOBRIEF": "YES", "HAVE_DOT": "NO",
        "QUIET": "YES", "WARNINGS": "NO", "DISABLE_INDEX": "NO", "GENERATE_TREEVIEW": "YES", "FULL_PATH_NAMES": "YES", "STRIP_FROM_PATH": SOURCE,
        "VERBATIM_HEADERS": "NO", "SEARCHENGINE": "YES", "BUILTIN_STL_SUPPORT": "YES", "HTML_COLORSTYLE": "AUTO_LIGHT"}
    subprocess.run(["doxygen", "-"], input="\n".join(f"{key} = {value}" for key, value in settings.items()), text=True, cwd=SOURCE, check=True,
                   stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the site; replaced")
    parser.add_argument("--without-api", action="store_true", help="leave the API reference out, which takes most of the time")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    if out.exists() and not (out / "index.html").exists():
        sys.exit(f"--out {out} is a folder without index.html, so no earlier site; name another one")
    if not arguments.without_api and shutil.which("doxygen") is None:
        sys.exit("doxygen is missing: install Debian's package doxygen, or give --without-api")
    sphinx = make_environment(out.with_name(out.name + ".venv"))
    staged = out.with_name(out.name + ".pages")
    shutil.rmtree(staged, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    stage = Stage(staged)
    stage.write()
    stage.write_contents(not arguments.without_api)
    (staged / "conf.py").write_text(CONF)
    subprocess.run([sphinx, "-q", "-W", "--keep-going", "-b", "html", "-d", out.with_name(out.name + ".cache"), staged, out], check=True)
    if not arguments.without_api:
        write_api(out)
    print(f"{out}/index.html: {len(stage.pages)} pages" + ("" if arguments.without_api else f", and the API reference {out}/api/index.html"))


if __name__ == "__main__":
    main()
