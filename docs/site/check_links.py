# SPDX-License-Identifier: MIT
# Follows every link of the pages in a directory, to a file and to a place in it: check_links.py
# SITE. Prints those that lead nowhere, and fails if there are any. Links to other hosts are not
# followed.
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.places = set()
        self.links = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


site = pathlib.Path(sys.argv[1])
pages = {path.name: Page(path) for path in site.glob("*.html")}
broken = []
followed = 0
for name, page in sorted(pages.items()):
    for link in page.links:
        to = urllib.parse.urlsplit(link)
        if to.scheme or to.netloc:
            continue
        followed += 1
        target = urllib.parse.unquote(to.path) or name
        if not (site / target).is_file():
            broken.append(f"{name}: {link}")
        elif to.fragment and target in pages and to.fragment not in pages[target].places:
            broken.append(f"{name}: {link} (no such place)")
for line in broken:
    print(line)
if broken:
    sys.exit(f"{len(broken)} of {followed} links lead nowhere")
if followed < 1000:
    sys.exit(f"there are only {followed} links: pages are missing")
print(f"{len(pages)} pages, {followed} links")
