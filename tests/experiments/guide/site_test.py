#!/usr/bin/env python3
"""Builds the guide's site, follows every link in it, and searches it in the real Chromium, from files and without a network.

Usage: site_test.py SOURCE FOLDER; exit code 77: PyPI cannot be reached"""
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

REFERENCES = {"a": "href", "link": "href", "script": "src", "img": "src", "iframe": "src"}


class Page(html.parser.HTMLParser):
    """The references of a page, and the names within it."""

    def __init__(self, path):
        super().__init__()
        self.references, self.names = [], set()
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given.get("id"), given.get("name")}
        if given.get(REFERENCES.get(tag)):
            self.references.append((tag, given[REFERENCES[tag]]))


def check_links(site):
    pages = {path: Page(path) for path in site.rglob("*.html") if "api" not in path.relative_to(site).parts}
    wrong, count = [], 0
    for path, page in pages.items():
        for tag, reference in page.references:
            parts = urllib.parse.urlsplit(reference)
            if parts.scheme or parts.netloc:
                if tag != "a":
                    wrong.append(f"{path.relative_to(site)}: {tag} loads {reference} from a network")
                continue
            count += 1
            there = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not there.exists():
                wrong.append(f"{path.relative_to(site)}: {reference} is not there")
            elif parts.fragment and there in pages and parts.fragment not in pages[there].names:
                wrong.append(f"{path.relative_to(site)}: {reference} names nothing on that page")
    if wrong:
        sys.exit("\n".join(wrong[:40]))
    if count < 1000:
        sys.exit(f"the site has only {count} links")
    return count


def search(site, words, page):
    found = subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom",
                            f"file://{site}/search.html?{urllib.parse.urlencode({'q': words})}"], capture_output=True, text=True, timeout=120).stdout
    results = re.findall(r'<li class="kind[^>]*><a href="([^"]*?)(?:[?#][^"]*)?"', found)
    if page not in results:
        sys.exit(f"searching for '{words}' does not find {page}, but {results}")


def main(source, folder):
    words = [sys.executable, source / "experiments/guide/build_site.py", "--out", folder / "site"]
    if shutil.which("doxygen") is None:
        words.append("--without-api")
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0 and "pip" in done.stderr and "returned non-zero" in done.stderr:
        print("skipped: PyPI cannot be reached\n" + done.stderr[-500:])
        return 77
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    count = check_links(folder / "site")
    if shutil.which("doxygen") and not list((folder / "site/api").glob("classtroupe_1_1env_1_1Environment.html")):
        sys.exit("the API reference has no page of troupe::env::Environment")
    if shutil.which("chromium"):
        search(folder / "site", "rate limiter", "experiments/guide/stuck.html")
        search(folder / "site", "completion", "experiments/guide/first_hour.html")
    print(f"{count} links hold")
    return 0


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:3])))
