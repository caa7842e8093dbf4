# SPDX-License-Identifier: MIT
# Prepares the documents for Doxygen: pages.py SOURCE PAGES SITE. Each Markdown file becomes one in
# PAGES, whose name is its page's, with the anchors that other hosts give to headings and with links
# that hold in SITE: to other pages, to the pages of public headers, and to other files of the tree,
# which are copied to SITE/tree as text.
import html
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

source, pages, site = (pathlib.Path(argument) for argument in sys.argv[1:])
listed = subprocess.run(
    ["git", "-C", source, "ls-files", "--cached", "--others", "--exclude-standard"],
    stdout=subprocess.PIPE, text=True)
if listed.returncode != 0:
    sys.exit("pages.py: git has to list the files; run it in a clone")
files = listed.stdout.splitlines()
fence = re.compile(r"^```")
image = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
link = re.compile(r"(?<!!)\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")


def is_page(path):
    return re.fullmatch(r"(docs/)?[^/]+\.md", path) is not None


def page_name(path):
    return "index" if path == "README.md" else pathlib.PurePath(path).stem.lower()


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower(), flags=re.ASCII).replace(" ", "-")


def header_page(path):
    """The name that Doxygen gives to the page of a file."""
    return pathlib.PurePath(path).name.replace("_", "__").replace(".", "_8") + ".html"


def copy_as_text(path):
    """A file of the tree, or the list of a directory's, under SITE/tree."""
    target = site / "tree" / (path + ".txt")
    target.parent.mkdir(parents=True, exist_ok=True)
    if path in files:
        shutil.copyfile(source / path, target)
    else:
        inside = [name for name in files if name.startswith(path + "/")]
        if not inside:
            sys.exit(f"pages.py: a link leads to {path}, which is not in the tree")
        target.write_text("\n".join(inside) + "\n")
    return f"tree/{path}.txt"


def address(page, target, anchor):
    """Where a link of a document leads in the site."""
    path = page if not target else posixpath.normpath(
        posixpath.join(posixpath.dirname(page), target))
    if is_page(path):
        own = f"#{page_name(path)}-{anchor[1:]}" if anchor else ""
        return page_name(path) + ".html" + own
    if path.startswith("include/redlock/") and path.endswith((".h", ".hpp")):
        return header_page(path)
    if path.endswith((".svg", ".html")):
        shutil.copyfile(source / path, site / pathlib.PurePath(path).name)
        return pathlib.PurePath(path).name
    return copy_as_text(path)


def as_html(page, text):
    """Images, whose text may take several lines, which Doxygen does not expect."""
    def tag(it):
        words = html.escape(" ".join(it[1].split()))
        return f'<img src="{address(page, it[2], None)}" alt="{words}">'
    return image.sub(tag, text)


def prepared(page):
    name = page_name(page)
    inside = False
    first = True
    seen = {}
    for line in as_html(page, (source / page).read_text(encoding="utf-8")).splitlines():
        if fence.match(line):
            inside = not inside
        elif not inside:
            heading = re.match(r"^(#+) (.*)$", line)
            if heading:
                label = name if first else f"{name}-{anchor_of(heading[2])}"
                # A heading that is there again, as in CHANGELOG.md, gets a number.
                again = seen[label] = seen.get(label, -1) + 1
                if again:
                    label = f"{label}-{again}"
                # That of the main page is Doxygen's own.
                line = line if first and name == "index" else f"{line} {{#{label}}}"
                first = False
            else:
                line = link.sub(
                    lambda it: f"]({address(page, it[1], it[2])})", line)
                line = re.sub(r"(?<=\w)#(?=\d)", r"\\#", line)
        yield line


pages.mkdir(parents=True)
site.mkdir(parents=True)
for page in files:
    if is_page(page):
        text = "\n".join(prepared(page)) + "\n"
        (pages / pathlib.PurePath(page).name).write_text(text, encoding="utf-8")
